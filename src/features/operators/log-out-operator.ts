import type { App } from '../../app.js';
import { forgetOperators, operatorSessionStore, type OperatorSession } from '../access/operator.js';

/** Ends a token: here at once, in other processes within a second. Harmless to repeat. */
export async function logOutOperator(app: App, session: Pick<OperatorSession, '_id'>): Promise<void> {
  await operatorSessionStore(app).deleteOne({ _id: session._id });
  forgetOperators(app);
}

import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { findObjectId } from '../../platform/ids.js';
import { forgetOperators, operatorSessionStore, operatorStore, type Operator } from '../access/operator.js';
import { normaliseEmail } from '../users/credentials.js';

/** The operator with that address or id; 404 OPERATOR_NOT_FOUND. */
export async function requireOperatorNamed(app: Pick<App, 'db'>, emailOrId: string): Promise<Operator> {
  const id = findObjectId(emailOrId);
  const found = await operatorStore(app).findOne(id ? { _id: id } : { email: normaliseEmail(emailOrId) });
  if (!found) throw missing('OPERATOR_NOT_FOUND', `There is no operator "${emailOrId.slice(0, 100)}"`);
  return found;
}

/** Removes an operator: its tokens end with the first write, in other processes within a second. Harmless to repeat. */
export async function removeOperator(app: App, operator: Pick<Operator, '_id'>): Promise<void> {
  await operatorStore(app).deleteOne({ _id: operator._id });
  await operatorSessionStore(app).deleteMany({ operatorId: operator._id });
  forgetOperators(app);
}

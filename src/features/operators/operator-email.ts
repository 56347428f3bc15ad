import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { operatorStore, type Operator } from '../access/operator.js';
import { isEmail, normaliseEmail } from '../users/credentials.js';

/** The stored form of an operator's address; 400 for what is none. */
export function requireOperatorEmail(text: string): string {
  const email = normaliseEmail(text);
  if (!isEmail(email)) throw invalid('INVALID_EMAIL', `"${text.slice(0, 100)}" is not an e-mail address`);
  return email;
}

/** The operator with that address in its stored form, or null. */
export function findOperatorByEmail(app: Pick<App, 'db'>, email: string): Promise<Operator | null> {
  return operatorStore(app).findOne({ email });
}

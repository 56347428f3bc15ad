import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, invalid } from '../../errors.js';
import { OPERATORS_TENANT } from '../../http/admission/tenants.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import { operatorStore, type Operator, type OperatorRole } from '../access/operator.js';
import type { Project } from '../projects/project.js';
import { requireNewPassword, isEmail, normaliseEmail } from '../users/credentials.js';

export interface NewOperator {
  email: string;
  password: string;
  role: OperatorRole;
  /** The projects it sees; null = all, future ones too. */
  projects: readonly Pick<Project, '_id'>[] | null;
}

/** Adds an operator by one write. 400 for what is not an address or no good password, 409 OPERATOR_EXISTS. */
export async function addOperator(app: App, input: NewOperator): Promise<Operator> {
  const email = requireOperatorEmail(input.email);
  requireNewPassword(input.password);
  // Before the slow hash; the unique index has the last word.
  if (await findOperatorByEmail(app, email)) throw operatorExists(email);
  const operator: Operator = {
    _id: new ObjectId(),
    email,
    role: input.role,
    projects: input.projects && input.projects.map(({ _id }) => _id),
    passwordHash: await app.passwords.inTurn(OPERATORS_TENANT, (bcrypt) => bcrypt.hash(input.password)),
    createdAt: new Date(app.clock.now()),
  };
  if (!(await unlessDuplicate(operatorStore(app).insertOne(operator)))) throw operatorExists(email);
  return operator;
}

const operatorExists = (email: string): Error =>
  conflict('OPERATOR_EXISTS', `There is already an operator ${email}: remove it first to give it another role`);

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

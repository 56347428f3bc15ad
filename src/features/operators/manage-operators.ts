import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, invalid, missing } from '../../errors.js';
import { OPERATORS_TENANT } from '../../http/admission/tenants.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import {
  operatorStore,
  WITHOUT_VIEWS,
  forgetOperators,
  operatorSessionStore,
  type Operator,
  type OperatorRole,
} from '../access/operator.js';
import type { Project } from '../projects/project.js';
import { requireNewPassword, isEmail, normaliseEmail } from '../users/credentials.js';
import { findObjectId } from '../../platform/ids.js';

interface NewOperator {
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

/** All operators by address. */
export function listOperators(app: Pick<App, 'db'>): Promise<Operator[]> {
  return operatorStore(app).find({}, WITHOUT_VIEWS).sort({ email: 1 }).toArray();
}

/** An operator as HTTP and command line show it; `projects` null = all. */
export function presentOperator(operator: Operator) {
  return {
    id: operator._id.toHexString(),
    email: operator.email,
    role: operator.role,
    projects: operator.projects && operator.projects.map((id) => id.toHexString()),
    createdAt: operator.createdAt.toISOString(),
  };
}

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

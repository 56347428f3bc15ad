import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { unauthenticated, forbidden } from '../../errors.js';
import { OPERATORS_TENANT } from '../../http/admission/tenants.js';
import type { PasswordWork } from '../../platform/secrets/password.js';
import {
  operatorSessionStore,
  type Operator,
  type OperatorSession,
  type SignedInOperator,
} from '../access/operator.js';
import { finishAuditEntry, withAuditEntry, startAuditEntry, type NewAuditEntry } from '../audit/audit-log.js';
import { loginLock } from '../users/sessions/login-lock.js';
import { findOperatorByEmail } from './manage-operators.js';
import {
  openOperatorSession,
  endOperatorSessions,
  storeOperatorPassword,
  type OpenedSession,
} from './operator-sessions.js';
import type { ActingOperator } from '../access/require-operator.js';
import { requireNewPassword } from '../users/credentials.js';

/** The purpose of a password. */
interface Purpose {
  /** Stands where failures of end users name a project: no project has such an id, which would be of 1970. */
  countedAs: ObjectId;
  /** Audit entry for a wrong password; null where the caller records it. */
  action: string | null;
  /** The message for a wrong one. */
  refusal: string;
}

const REFUSAL = 'Invalid e-mail or password';
const SIGN_IN: Purpose = { countedAs: new ObjectId('0'.repeat(24)), action: 'operator login', refusal: REFUSAL };
/**
 * Of those who have signed in: their guesses do not keep the operator from signing in elsewhere, nor do other people's
 * failed sign-ins keep the operator from confirming.
 */
const OWN_PASSWORD = new ObjectId('0'.repeat(23) + '1');

/** Operators' sessions do not note where they were opened; one who is locked out gets a token on the command line. */
const noneKnown = (): Promise<boolean> => Promise.resolve(false);

const SESSION_MS = 12 * 3_600_000;

/** A request with a password: where it comes from, and a signal for when the client disconnects. */
export interface Asking {
  ip: string;
  requestId: string;
  gone?: AbortSignal;
}

/**
 * Signs an operator in for twelve hours. 401 INVALID_CREDENTIALS, at the same cost for an unknown address; 423 after
 * five failures in a row; 503 when too many sign-ins wait.
 */
export async function logInOperator(
  app: App,
  input: { email: string; password: string },
  asking: Asking,
  { isConsole = false } = {},
): Promise<OpenedSession & { operator: Operator }> {
  const operator = await proveOperator(app, input, asking, SIGN_IN);
  const act = { actor: operator.email, action: 'operator login', input: {}, requestId: asking.requestId };
  // The password may have been changed, or the operator removed, since it was proven.
  const admit = (stored: Operator | null): void => {
    if (stored?.passwordHash !== operator.passwordHash) throw unauthenticated('INVALID_CREDENTIALS', REFUSAL);
  };
  const opened = await withAuditEntry(app, act, () =>
    openOperatorSession(app, operator, SESSION_MS, { isConsole, admit }),
  );
  return { operator, ...opened };
}

/** The operator whose password it is; refuses as logInOperator does. */
async function proveOperator(
  app: App,
  input: { email: string; password: string },
  { ip, requestId, gone }: Asking,
  { countedAs, action, refusal }: Purpose,
): Promise<Operator> {
  const lock = loginLock(app, countedAs, input.email, ip, noneKnown);
  await lock.rejectLocked();
  const checkPassword = async (bcrypt: PasswordWork): Promise<Operator> => {
    // Looked at again when the turn has come: of many guesses at once few are compared, and of these five at most are
    // told.
    await lock.rejectLocked();
    const found = await findOperatorByEmail(app, input.email);
    if (await bcrypt.matches(input.password, found?.passwordHash ?? null)) {
      await lock.admit();
      return found!;
    }
    await lock.countFailure();
    if (action !== null) await recordFailure(app, { actor: input.email, action, input: { from: ip }, requestId });
    throw unauthenticated('INVALID_CREDENTIALS', refusal);
  };
  return app.passwords.inTurn(OPERATORS_TENANT, checkPassword, gone);
}

/** Failures recorded in an hour, in all processes together, so that attackers cannot fill the log. */
const RECORDED = { count: 100, windowMs: 3_600_000 };

async function recordFailure(app: App, tried: NewAuditEntry): Promise<void> {
  if (!(await app.limits.consume('recorded failures of operators', RECORDED)).allowed) return;
  const act = await startAuditEntry(app, tried);
  await finishAuditEntry(app, act, { code: 'INVALID_CREDENTIALS', input: act.input });
}

/** The signed-in operator; 403 NOT_SIGNED_IN for BSVC_ADMIN_TOKEN. */
export function requireOwnAccount({ signedIn }: ActingOperator): SignedInOperator {
  if (!signedIn) {
    throw forbidden('NOT_SIGNED_IN', 'This needs a signed-in operator, not BSVC_ADMIN_TOKEN');
  }
  return signedIn;
}

/**
 * Notes that the operator of a session has given the password again. 401 INVALID_CREDENTIALS; 423 after five in a row,
 * counted apart from failed sign-ins; 503 when too many sign-ins wait.
 */
export async function confirmOperator(
  app: App,
  { operator, session }: SignedInOperator,
  password: string,
  asking: Asking,
): Promise<void> {
  const purpose = { countedAs: OWN_PASSWORD, action: 'operator confirm', refusal: 'The password is not right' };
  await proveOperator(app, { email: operator.email, password }, asking, purpose);
  const confirmedAt = new Date(app.clock.now());
  await operatorSessionStore(app).updateOne({ _id: session._id }, { $set: { confirmedAt } });
}

/**
 * Gives an operator a new password, who says the current one, and ends all other sessions of theirs. 400 for no good
 * one, 401 INVALID_CREDENTIALS, whose failures count as those of confirmOperator; 503 when too many sign-ins wait.
 */
export async function changeOwnPassword(
  app: App,
  { operator, session }: SignedInOperator,
  { currentPassword, newPassword }: { currentPassword: string; newPassword: string },
  asking: Asking,
): Promise<void> {
  requireNewPassword(newPassword, 'newPassword');
  const credentials = { email: operator.email, password: currentPassword };
  const purpose = { countedAs: OWN_PASSWORD, action: null, refusal: 'The current password is not right' };
  await proveOperator(app, credentials, asking, purpose);
  await storeOperatorPassword(app, operator, newPassword);
  await endOperatorSessions(app, operator, { but: session });
}

/** A session as its operator sees it; nothing of it opens anything. */
export function presentOwnSession(session: OperatorSession, current: OperatorSession) {
  return {
    createdAt: session.createdAt.toISOString(),
    expiresAt: session.expiresAt.toISOString(),
    usedAt: session.usedAt?.toISOString() ?? null,
    console: session.isConsole === true,
    current: session._id === current._id,
  };
}

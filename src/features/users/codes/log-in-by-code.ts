import type { App } from '../../../app.js';
import { AppError, forbidden, invalid } from '../../../errors.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import { requireSigningKey } from '../../projects/token-secret.js';
import type { Client } from '../sessions/open-session.js';
import { completeSignIn, accountDisabled, type SignedIn } from '../sign-in/complete-sign-in.js';
import type { User } from '../user.js';
import { accountChanged, findUserByEmail } from '../user-store.js';
import { codeInvalid, takeCode } from './one-time-code.js';
import { claimAccount, createVerifiedUser } from './ownership.js';
import { sendAskedCode, type CodeRequest } from './send-code.js';
import type { Asker } from './mail-allowance.js';

const MAX_RACES = 3;

/**
 * Has a code mailed that signs in, with a link to `redirect` if that is one of the project's addresses: 400
 * REDIRECT_NOT_ALLOWED otherwise, 403 CODE_LOGIN_OFF if the project does not offer it.
 */
export async function sendLoginCode(
  app: App,
  project: Project,
  email: string,
  { asker, redirect }: CodeRequest,
): Promise<void> {
  requireCodeLogin(project);
  if (redirect !== undefined && !signInOf(project).redirects.includes(redirect)) {
    throw invalid('REDIRECT_NOT_ALLOWED', 'This address is not one of the project’s redirect URLs');
  }
  await sendAskedCode(app, project, 'login', email, { asker, redirect });
}

/**
 * Signs in by a mailed code, which is used up first: it opens one session at most. Where the project says `signup`, an
 * address without an account gets one. 400 OTP_INVALID alike for every address; 403 ACCOUNT_DISABLED only with the
 * right code.
 */
export async function logInByCode(
  app: App,
  project: Project,
  { email, otp }: { email: string; otp: string },
  client: Client,
  asker: Asker,
): Promise<SignedIn> {
  requireCodeLogin(project);
  // Before the code is spent: without its tokens the sign-in would be lost.
  requireSigningKey(app, project);
  await takeCode(app, project, 'login', email, otp, asker);
  const user = await findVerifiedUser(app, project, email, client);
  return { user, tokens: await completeSignIn(app, project, user, client, { method: 'otp' }) };
}

async function findVerifiedUser(app: App, project: Project, email: string, client: Client): Promise<User> {
  for (let race = 0; race < MAX_RACES; race++) {
    const existing = await findUserByEmail(app, project._id, email);
    if (existing?.[HIDDEN_FIELD].disabledAt) throw accountDisabled();
    if (!existing && signInOf(project).codeLogin !== 'signup') throw codeInvalid();
    const user = existing ? await claimAccount(app, project, existing) : await create(app, project, email, client);
    if (user) return user;
  }
  throw accountChanged();
}

/** Null when another request created the account first. */
async function create(app: App, project: Project, email: string, client: Client): Promise<User | null> {
  try {
    return await createVerifiedUser(app, project, { email, client });
  } catch (error) {
    if (error instanceof AppError && error.code === 'EMAIL_TAKEN') return null;
    throw error;
  }
}

function requireCodeLogin(project: Project): void {
  if (signInOf(project).codeLogin !== 'off') return;
  throw forbidden(
    'CODE_LOGIN_OFF',
    `Sign-in with email codes is off in this project. Turn it on: bsvc project update ${project.name} --code-login existing`,
  );
}

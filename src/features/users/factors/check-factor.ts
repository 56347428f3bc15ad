import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import type { App } from '../../../app.js';
import { unauthenticated } from '../../../errors.js';
import { text } from '../../../platform/schema/schema.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { lockUser } from '../sessions/end-sessions.js';
import type { AuthMethod } from '../sessions/session.js';
import { nameOf, type User } from '../user.js';
import { findUser, noteInAccount } from '../user-store.js';
import { hashRecoveryCode, openTotp } from './factors.js';
import { findTotpStep } from './totp.js';
import { ASSERTION, checkPasskey } from './passkeys.js';

/** A second factor in a body. */
export interface GivenFactor {
  totp?: string;
  recoveryCode?: string;
  passkey?: AuthenticationResponseJSON;
}

export const FACTOR_FIELDS = {
  'totp?': text({ minLength: 1, maxLength: 20, wellFormed: true, description: 'From the authenticator app.' }),
  'recoveryCode?': text({ minLength: 1, maxLength: 40, wellFormed: true, description: 'Each works once.' }),
  'passkey?': { ...ASSERTION, description: 'The browser’s response to `login/passkey/options`.' },
};

/**
 * Takes a code of the second factor, at most once however many send it, and answers how the user proved it; null when
 * none is given. 401 PASSKEY_INVALID, or MFA_CODE_INVALID for a wrong one or an account without a factor; guesses count
 * towards the account's lock before they are compared: 423.
 */
export async function takeFactor(
  app: App,
  project: Project,
  { user, ip }: { user: User; ip: string },
  { totp, recoveryCode, passkey }: GivenFactor,
): Promise<AuthMethod | null> {
  if (passkey !== undefined) {
    await app.db.transaction((await checkPasskey(app, project, passkey, user)).uses);
    return 'passkey';
  }
  const code = totp ?? recoveryCode;
  if (code === undefined) return null;
  const use = totp === undefined ? useRecoveryCode : useTotp;
  const lock = lockUser(app, project._id, nameOf(user), ip);
  if (!(await lock.guessFactor(() => use(app, project, user, code)))) {
    throw unauthenticated('MFA_CODE_INVALID', 'The code is wrong or already used');
  }
  return totp === undefined ? 'recovery' : 'totp';
}

/** A user who has the factor needs no reset of it. */
const NO_RESET = { [`${HIDDEN_FIELD}.mfaResetAt`]: null };

async function useTotp(app: App, project: Project, user: User, code: string): Promise<boolean> {
  const { totp } = user[HIDDEN_FIELD];
  const step = totp ? findTotpStep(openTotp(app, user, totp.encrypted), code, app.clock.machine()) : null;
  if (!totp || step === null) return false;
  const place = `${HIDDEN_FIELD}.totp`;
  const taken = await noteInAccount(
    app,
    project._id,
    { _id: user._id, [`${place}.since`]: totp.since, [`${place}.lastStep`]: { $lt: step } },
    { [`${place}.lastStep`]: step, ...NO_RESET },
  );
  return taken !== null;
}

const MAX_RACES = 12;

async function useRecoveryCode(app: App, project: Project, user: User, code: string): Promise<boolean> {
  const place = `${HIDDEN_FIELD}.recovery`;
  let current: User | null = user;
  // Others of the ten may be used at the same time.
  for (let race = 0; race < MAX_RACES && current; race++) {
    const { totp, recovery } = current[HIDDEN_FIELD];
    const hash = totp ? hashRecoveryCode(openTotp(app, current, totp.encrypted), code) : '';
    if (!recovery?.includes(hash)) return false;
    const rest = recovery.filter((other) => other !== hash);
    const asRead = { _id: user._id, [place]: recovery };
    if (await noteInAccount(app, project._id, asRead, { [place]: rest, ...NO_RESET })) return true;
    current = await findUser(app, project._id, user._id);
  }
  return false;
}

import type { App } from '../../../app.js';
import { conflict, forbidden, invalid } from '../../../errors.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import { nameOf, type User } from '../user.js';
import { accountChanged, noteInAccount } from '../user-store.js';
import { generateRecoveryCodes, openTotp, encryptTotp, WITHOUT_TOTP } from './factors.js';
import { findTotpStep, generateTotpSecret, totpUri } from './totp.js';

const PENDING_MS = 10 * 60_000;

/**
 * Begins to enrol an authenticator app: its secret counts once a code of it comes back within ten minutes. 403 MFA_OFF
 * where the project wants none, EMAIL_UNVERIFIED before the address is proven; 409 TOTP_ENROLLED when there is one.
 */
export async function beginTotp(app: App, project: Project, user: User): Promise<{ secret: string; uri: string }> {
  requireEnrollable(project, user);
  const secret = generateTotpSecret();
  const until = new Date(app.clock.now() + PENDING_MS);
  await note(app, project, user, { totpPending: { encrypted: encryptTotp(app, user, secret), until } });
  return { secret, uri: totpUri(secret, { issuer: project.name, account: nameOf(user) }) };
}

/** Enrols the app whose code this is and answers ten recovery codes. 400 MFA_CODE_INVALID; else as beginTotp. */
export async function confirmTotp(app: App, project: Project, user: User, code: string): Promise<string[]> {
  requireEnrollable(project, user);
  const pending = user[HIDDEN_FIELD].totpPending;
  const now = app.clock.now();
  const secret = pending && pending.until.getTime() > now ? openTotp(app, user, pending.encrypted) : null;
  const step = secret === null ? null : findTotpStep(secret, code, app.clock.machine());
  if (!pending || secret === null || step === null) {
    throw invalid('MFA_CODE_INVALID', 'The code is wrong, or the ten minutes have passed');
  }
  const { codes, hashes } = generateRecoveryCodes(secret);
  await note(
    app,
    project,
    user,
    {
      totp: { encrypted: pending.encrypted, since: new Date(now), lastStep: step },
      totpPending: null,
      recovery: hashes,
      mfaResetAt: null,
    },
    { [`${HIDDEN_FIELD}.totpPending.encrypted`]: pending.encrypted },
  );
  return codes;
}

/** Ten new recovery codes in place of the old. 409 TOTP_NOT_ENROLLED. */
export async function renewRecoveryCodes(app: App, project: Project, user: User): Promise<string[]> {
  const totp = requireTotp(user);
  const { codes, hashes } = generateRecoveryCodes(openTotp(app, user, totp.encrypted));
  const asRead = { [`${HIDDEN_FIELD}.totp.since`]: totp.since };
  await note(app, project, user, { recovery: hashes }, asRead);
  return codes;
}

/** Takes the app and the recovery codes off the account. 409 TOTP_NOT_ENROLLED. */
export async function removeTotp(app: App, project: Project, user: User): Promise<void> {
  const asRead = { _id: user._id, [`${HIDDEN_FIELD}.totp.since`]: requireTotp(user).since };
  if (!(await noteInAccount(app, project._id, asRead, WITHOUT_TOTP))) throw accountChanged();
}

function requireTotp(user: User) {
  const { totp } = user[HIDDEN_FIELD];
  if (!totp) throw conflict('TOTP_NOT_ENROLLED', 'The account has no authenticator app. Add one with mfa/totp');
  return totp;
}

function requireEnrollable(project: Project, user: User): void {
  if (signInOf(project).mfa === 'off') {
    throw forbidden(
      'MFA_OFF',
      `MFA is off in this project. Turn it on: bsvc project update ${project.name} --mfa optional`,
    );
  }
  // Otherwise someone who signed up with another person's address would lock its owner out.
  if (!user.emailVerified) {
    throw forbidden('EMAIL_UNVERIFIED', 'Confirm the email address first: POST verify-email with its code');
  }
  if (user[HIDDEN_FIELD].totp) {
    throw conflict('TOTP_ENROLLED', 'The account already has an authenticator app. Remove it first');
  }
}

/** One write, as long as neither ownership, sessions nor factor have changed since the account was read. */
async function note(
  app: App,
  project: Project,
  user: User,
  notes: Record<string, unknown>,
  conditions: Record<string, unknown> = { [`${HIDDEN_FIELD}.totp`]: null },
): Promise<void> {
  const { ownership, stamp } = user[HIDDEN_FIELD];
  const asRead = {
    _id: user._id,
    emailVerified: true,
    [`${HIDDEN_FIELD}.ownership`]: ownership ?? null,
    [`${HIDDEN_FIELD}.stamp`]: stamp ?? null,
    ...conditions,
  };
  const set = Object.fromEntries(Object.entries(notes).map(([name, value]) => [`${HIDDEN_FIELD}.${name}`, value]));
  if (!(await noteInAccount(app, project._id, asRead, set))) throw accountChanged();
}

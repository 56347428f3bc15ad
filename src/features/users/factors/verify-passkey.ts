import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { App } from '../../../app.js';
import { forbidden, unauthenticated, type AppError } from '../../../errors.js';
import { claimed, text, type Schema } from '../../../platform/schema/schema.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { signInOf, type PasskeySite } from '../../projects/sign-in-settings.js';
import { isPasskeyOf, passkeyId, passkeyStore, type Passkey } from '../accounts/passkey.js';
import type { User } from '../user.js';
import { findUser, noteInAccount } from '../user-store.js';
import { openChallenge, takeChallenge } from './account-challenge.js';
import { settleReset } from './reset-factors.job.js';

/** What a browser answers to a challenge, as JSON; the library reads it. */
const CREDENTIAL = {
  type: 'object',
  required: ['id', 'rawId', 'type', 'response'],
  properties: {
    id: text({ pattern: '^[A-Za-z0-9_-]{1,1400}$' }),
    rawId: text({ maxLength: 1400 }),
    type: { enum: ['public-key'] },
    response: { type: 'object' },
    clientExtensionResults: { type: 'object' },
  },
};
export const ASSERTION: Schema<AuthenticationResponseJSON> = claimed({
  ...CREDENTIAL,
  description: 'Of `navigator.credentials.get`, as JSON.',
});
export const REGISTRATION: Schema<RegistrationResponseJSON> = claimed({
  ...CREDENTIAL,
  description: 'Of `navigator.credentials.create`, as JSON.',
});
/** Loaded when the first passkey comes: it takes a tenth of a second and ten megabytes. */
export const loadWebauthn = () => import('@simplewebauthn/server');

/** 403 PASSKEYS_OFF where the project has none. */
export function requirePasskeySite(project: Project): PasskeySite {
  const site = signInOf(project).passkeys;
  if (site) return site;
  throw forbidden(
    'PASSKEYS_OFF',
    `This project has no passkeys: bsvc project update ${project.name} --passkey-rp-id <host> --passkey-origin <origin>`,
  );
}

/** The options by which a browser asks for any passkey of the site; the challenge is good once, for five minutes. */
export async function beginPasskeyLogin(app: App, project: Project) {
  const { rpId } = requirePasskeySite(project);
  const { generateAuthenticationOptions } = await loadWebauthn();
  const challenge = await openChallenge(app, project, { purpose: 'passkey-login', userId: null, held: {} });
  return generateAuthenticationOptions({
    rpID: rpId,
    challenge: Buffer.from(challenge, 'base64url'),
    userVerification: 'required',
    allowCredentials: [],
  });
}

/**
 * The user whose passkey answered a challenge, which is used up by that. 401 PASSKEY_INVALID for anything else: another
 * site, project or key, an earlier owner's or one that was taken off; with `of` also for another user's.
 */
export async function takePasskey(
  app: App,
  project: Project,
  response: AuthenticationResponseJSON,
  of: User | null = null,
): Promise<User> {
  const site = requirePasskeySite(project);
  const passkey = await passkeyStore(app).findOne({ _id: passkeyId(project, response.id) });
  const found = passkey && (await findUser(app, project._id, passkey.userId));
  const user = found && (await settleReset(app, project, found));
  const counter = await verify(app, project, site, response, passkey);
  if (!passkey || !user || counter === null || !isPasskeyOf(passkey, user)) throw passkeyInvalid();
  if (of && !of._id.equals(user._id)) throw passkeyInvalid();
  const used = await passkeyStore(app).updateOne(
    { _id: passkey._id, counter: passkey.counter },
    { $set: { counter, usedAt: new Date(app.clock.now()) } },
  );
  // A counter that two uses have at once says that one of them is a copy.
  if (used.matchedCount === 0 && counter > 0) throw passkeyInvalid();
  const { mfaResetAt } = user[HIDDEN_FIELD];
  if (mfaResetAt) await noteInAccount(app, project._id, { _id: user._id }, { [`${HIDDEN_FIELD}.mfaResetAt`]: null });
  return user;
}

/** The counter that the device says; null when the answer is not right. The challenge is used up whether or not. */
async function verify(
  app: App,
  project: Project,
  { rpId, origins }: PasskeySite,
  response: AuthenticationResponseJSON,
  passkey: Passkey | null,
): Promise<number | null> {
  const { verifyAuthenticationResponse } = await loadWebauthn();
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: async (challenge) => (await takeChallenge(app, project, 'passkey-login', challenge)) !== null,
      expectedOrigin: origins,
      expectedRPID: rpId,
      credential: {
        id: response.id,
        publicKey: Buffer.from(passkey?.publicKey ?? '', 'base64url'),
        counter: passkey?.counter ?? 0,
      },
      requireUserVerification: true,
    });
    return verified ? authenticationInfo.newCounter : null;
  } catch {
    // Whatever of it cannot be read is the client's.
    return null;
  }
}

function passkeyInvalid(): AppError {
  return unauthenticated('PASSKEY_INVALID', 'The passkey is unknown here, or its answer is late, used or not right');
}

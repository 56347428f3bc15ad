import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { App } from '../../../app.js';
import { forbidden, unauthenticated, type AppError } from '../../../errors.js';
import type { Uses } from '../../quota/insert-service-record.js';
import { oneTimeTokens, type GoodToken } from '../../quota/one-time-token.js';
import { claimed, text, type Schema } from '../../../platform/schema/schema.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { signInOf, type PasskeySite } from '../../projects/sign-in-settings.js';
import { isPasskeyOf, passkeyId, PASSKEYS, passkeyStore, type Passkey } from '../accounts/passkey.js';
import type { User } from '../user.js';
import { findUser, noteInAccount } from '../user-store.js';
import { applyReset } from './reset-factors.job.js';

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
  description: 'The result of `navigator.credentials.get`, as JSON.',
});
export const REGISTRATION: Schema<RegistrationResponseJSON> = claimed({
  ...CREDENTIAL,
  description: 'The result of `navigator.credentials.create`, as JSON.',
});
/** How long a browser may take to ask its user for a passkey. */
export const CHALLENGE_MS = 5 * 60_000;
const CHALLENGES = oneTimeTokens<object>('passkey-login', CHALLENGE_MS);

/** Loaded when the first passkey comes: it takes a tenth of a second and ten megabytes. */
export const loadWebauthn = () => import('@simplewebauthn/server');

/** 403 PASSKEYS_OFF where the project has none. */
export function requirePasskeySite(project: Project): PasskeySite {
  const site = signInOf(project).passkeys;
  if (site) return site;
  throw forbidden(
    'PASSKEYS_OFF',
    `Passkeys are off in this project. Turn them on: bsvc project update ${project.name} --passkey-rp-id <host> --passkey-origin <origin>`,
  );
}

/** The options by which a browser asks for any passkey of the site; the challenge is good once, for five minutes. */
export async function beginPasskeyLogin(app: App, project: Project) {
  const { rpId } = requirePasskeySite(project);
  const { generateAuthenticationOptions } = await loadWebauthn();
  const challenge = await CHALLENGES.give(app, project, {});
  return generateAuthenticationOptions({
    rpID: rpId,
    challenge: Buffer.from(challenge, 'base64url'),
    userVerification: 'required',
    allowCredentials: [],
  });
}

/**
 * The user whose passkey answered a challenge, and the writes that use the answer up. 401 PASSKEY_INVALID for anything
 * else, which uses the challenge up: another site, project or key, an earlier owner's or one that was taken off; with
 * `of` also for another user's.
 */
export async function checkPasskey(
  app: App,
  project: Project,
  response: AuthenticationResponseJSON,
  of: User | null = null,
): Promise<{ user: User; uses: Uses }> {
  const site = requirePasskeySite(project);
  const passkey = await passkeyStore(app).findOne({ _id: passkeyId(project, response.id) });
  const found = passkey && (await findUser(app, project._id, passkey.userId));
  const user = found && (await applyReset(app, project, found));
  const { challenge, counter } = await verify(app, project, site, response, passkey);
  const isOwn = user && isPasskeyOf(passkey, user) && (!of || of._id.equals(user._id));
  if (!challenge || counter === null || !isOwn) {
    if (challenge) await app.db.transaction(challenge.use);
    throw passkeyInvalid();
  }
  const usedAt = new Date(app.clock.now());
  const uses: Uses = (tx) => {
    const known = tx.get<Passkey>(PASSKEYS, passkey._id);
    // A counter that two uses have at once says that one of them is a copy.
    if (!challenge.use(tx) || known?.counter !== passkey.counter) throw passkeyInvalid();
    tx.put(PASSKEYS, { ...known, counter, usedAt });
  };
  const { mfaResetAt } = user[HIDDEN_FIELD];
  if (mfaResetAt) await noteInAccount(app, project._id, { _id: user._id }, { [`${HIDDEN_FIELD}.mfaResetAt`]: null });
  return { user, uses };
}

/** The challenge that was answered, and the counter that the device says; null where they are not right. */
async function verify(
  app: App,
  project: Project,
  { rpId, origins }: PasskeySite,
  response: AuthenticationResponseJSON,
  passkey: Passkey | null,
): Promise<{ challenge: GoodToken<object> | null; counter: number | null }> {
  const { verifyAuthenticationResponse } = await loadWebauthn();
  let challenge: GoodToken<object> | null = null;
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: async (token) => {
        challenge = await CHALLENGES.find(app, project, token);
        return challenge !== null;
      },
      expectedOrigin: origins,
      expectedRPID: rpId,
      credential: {
        id: response.id,
        publicKey: Buffer.from(passkey?.publicKey ?? '', 'base64url'),
        counter: passkey?.counter ?? 0,
      },
      requireUserVerification: true,
    });
    const isGood = verified && !isOfFrame(response);
    return { challenge, counter: isGood ? authenticationInfo.newCounter : null };
  } catch {
    // Whatever of it cannot be read is the client's.
    return { challenge, counter: null };
  }
}

/**
 * True for an answer that a page got while it stood in a frame of another origin: the user cannot see whose page it is.
 */
export function isOfFrame({ response }: { response: { clientDataJSON: string } }): boolean {
  const client = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString()) as Record<string, unknown>;
  return client.crossOrigin === true || client.topOrigin !== undefined;
}

function passkeyInvalid(): AppError {
  return unauthenticated('PASSKEY_INVALID', 'The passkey is unknown, or its response is invalid, used or expired');
}

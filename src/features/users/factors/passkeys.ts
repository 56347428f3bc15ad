import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { App } from '../../../app.js';
import { forbidden, unauthenticated, conflict, invalid, type AppError } from '../../../errors.js';
import { insertServiceRecord, type Uses } from '../../quota/insert-service-record.js';
import { oneTimeTokens, type GoodToken } from '../../quota/one-time-token.js';
import { claimed, text, type Schema } from '../../../platform/schema/schema.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { signInOf, type PasskeySite } from '../../projects/sign-in-settings.js';
import {
  isPasskeyOf,
  passkeyId,
  PASSKEYS,
  passkeyStore,
  findPasskeyRecords,
  listPasskeys,
  MAX_PASSKEYS,
  type Passkey,
} from '../accounts/sign-in-methods.js';
import { isAnonymous, LASTING, type User } from '../user.js';
import { findUser, noteInAccount } from '../user-store.js';
import { applyReset } from './reset-factors.js';
import { unlessDuplicate } from '../../../platform/database/database.js';

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
const CHALLENGE_MS = 5 * 60_000;
const CHALLENGES = oneTimeTokens<object>('passkey-login', CHALLENGE_MS);

/** Loaded when the first passkey comes: it takes a tenth of a second and ten megabytes. */
const loadWebauthn = () => import('@simplewebauthn/server');

/** 403 PASSKEYS_OFF where the project has none. */
function requirePasskeySite(project: Project): PasskeySite {
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
  const { challenge, counter } = await verifyAssertion(app, project, site, response, passkey);
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
async function verifyAssertion(
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
function isOfFrame({ response }: { response: { clientDataJSON: string } }): boolean {
  const client = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString()) as Record<string, unknown>;
  return client.crossOrigin === true || client.topOrigin !== undefined;
}

function passkeyInvalid(): AppError {
  return unauthenticated('PASSKEY_INVALID', 'The passkey is unknown, or its response is invalid, used or expired');
}

const MAX_TRANSPORTS = 10;

interface Registration {
  userId: string;
  stamp: string | null;
  factorStamp: string | null;
}

const REGISTRATIONS = oneTimeTokens<Registration>('passkey-register', CHALLENGE_MS);

/**
 * The options by which a browser makes a passkey for a user. 403 PASSKEYS_OFF, EMAIL_UNVERIFIED before the address is
 * proven; 409 TOO_MANY_PASSKEYS.
 */
export async function beginPasskey(app: App, project: Project, user: User) {
  const { rpId } = requirePasskeySite(project);
  if (!user.emailVerified && !isAnonymous(user)) {
    throw forbidden('EMAIL_UNVERIFIED', 'Confirm the email address first: POST verify-email with its code');
  }
  const passkeys = await listPasskeys(app, project, user);
  if (passkeys.length >= MAX_PASSKEYS) throw tooMany();
  const { generateRegistrationOptions } = await loadWebauthn();
  const challenge = await REGISTRATIONS.give(app, project, registrationOf(user));
  return generateRegistrationOptions({
    rpName: project.name,
    rpID: rpId,
    userID: Buffer.from(user._id.toHexString()),
    userName: user.email ?? 'anonymous',
    challenge: Buffer.from(challenge, 'base64url'),
    attestationType: 'none',
    excludeCredentials: passkeys.map(({ credentialId: id }) => ({ id })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
}

/**
 * Stores the passkey that a browser made for beginPasskey, whose challenge is used up by that. 400 PASSKEY_INVALID; 409
 * PASSKEY_KNOWN, TOO_MANY_PASSKEYS.
 */
export async function registerPasskey(
  app: App,
  project: Project,
  user: User,
  { response, name }: { response: RegistrationResponseJSON; name: string },
): Promise<Passkey> {
  const made = await verifyRegistration(app, project, user, response);
  if (!made) throw invalid('PASSKEY_INVALID', 'The browser’s response is invalid, used or expired. Start again');
  const { factorStamp } = user[HIDDEN_FIELD];
  const passkey: Passkey = {
    _id: passkeyId(project, made.credential.id),
    projectId: project._id,
    userId: user._id,
    credentialId: made.credential.id,
    publicKey: Buffer.from(made.credential.publicKey).toString('base64url'),
    counter: made.credential.counter,
    transports: (made.credential.transports ?? []).filter((each) => typeof each === 'string').slice(0, MAX_TRANSPORTS),
    backedUp: made.credentialBackedUp,
    name,
    ...(factorStamp !== undefined && { factorStamp }),
    createdAt: new Date(app.clock.now()),
    usedAt: null,
  };
  if (!(await unlessDuplicate(insertServiceRecord(app, 'passkeys', passkey)))) {
    throw conflict('PASSKEY_KNOWN', 'This passkey is already registered');
  }
  // Looked at again: others may have been registered at the same time.
  if ((await findPasskeyRecords(app, project, user)).length > MAX_PASSKEYS) {
    await passkeyStore(app).deleteOne({ _id: passkey._id });
    throw tooMany();
  }
  if (isAnonymous(user)) await noteInAccount(app, project._id, { _id: user._id }, LASTING);
  return passkey;
}

/** What ends sessions, or passes the account on, ends a registration that is under way. */
function registrationOf({ _id, [HIDDEN_FIELD]: { stamp, factorStamp } }: User): Registration {
  return { userId: _id.toHexString(), stamp: stamp ?? null, factorStamp: factorStamp ?? null };
}

async function verifyRegistration(app: App, project: Project, user: User, response: RegistrationResponseJSON) {
  const { rpId, origins } = requirePasskeySite(project);
  const { verifyRegistrationResponse } = await loadWebauthn();
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  try {
    const attestation = decodeAttestationObject(Buffer.from(response.response.attestationObject, 'base64url'));
    // Certificates name addresses, which the library would ask about their revocation.
    if (attestation.get('attStmt').get('x5c') !== undefined) return null;
    if (!['none', 'packed'].includes(attestation.get('fmt'))) return null;
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: async (challenge) => {
        const taken = await REGISTRATIONS.take(app, project, challenge);
        return JSON.stringify(taken?.held) === JSON.stringify(registrationOf(user));
      },
      expectedOrigin: origins,
      expectedRPID: rpId,
      requireUserVerification: true,
    });
    return verified && !isOfFrame(response) ? registrationInfo : null;
  } catch {
    // Whatever of it cannot be read is the client's.
    return null;
  }
}

function tooMany(): Error {
  return conflict('TOO_MANY_PASSKEYS', `An account has at most ${MAX_PASSKEYS} passkeys: remove one first`);
}

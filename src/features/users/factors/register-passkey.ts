import type { RegistrationResponseJSON } from '@simplewebauthn/server';
import type { App } from '../../../app.js';
import { conflict, forbidden, invalid } from '../../../errors.js';
import { unlessDuplicate } from '../../../platform/database/database.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import { oneTimeTokens } from '../../quota/one-time-token.js';
import {
  findPasskeyRecords,
  listPasskeys,
  MAX_PASSKEYS,
  passkeyId,
  passkeyStore,
  type Passkey,
} from '../accounts/passkey.js';
import { isAnonymous, LASTING, type User } from '../user.js';
import { noteInAccount } from '../user-store.js';
import { CHALLENGE_MS, isOfFrame, loadWebauthn, requirePasskeySite } from './verify-passkey.js';

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
  const made = await verify(app, project, user, response);
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

async function verify(app: App, project: Project, user: User, response: RegistrationResponseJSON) {
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

import { createPrivateKey } from 'node:crypto';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid, missing } from '../../../errors.js';
import type { EncryptedPlace } from '../../../platform/secrets/reencrypt.js';
import { storeOf } from '../../../platform/database/database.js';
import { requirePublicTarget } from '../../../platform/network/require-public-target.js';
import type { Project } from '../../projects/project.js';
import { isRedirectTarget, isSafeWebAddress } from '../../projects/sign-in-settings.js';

export const SOCIAL_PROVIDERS = 'social_providers';

/** A provider that vouches for end users of a project, as its operator configured it. */
export interface SocialProvider {
  /** `<project id>:<name>` */
  _id: string;
  projectId: ObjectId;
  /** Part of the address: `social/<name>/start`. */
  name: string;
  /** GitHub speaks OAuth without OpenID: who signed in is asked of its API. */
  kind: 'oidc' | 'github';
  /** The OpenID issuer, or the address of a GitHub. */
  issuer: string;
  /** Named by who runs the whole service, who knows what stands in the own network: it need not be public. */
  mayBePrivate: boolean;
  clientId: string;
  /** The secret; of Apple the private key that signs one for each exchange. */
  encryptedSecret: string;
  /** Apple's names of the developer's team and of the key; of others absent. */
  apple?: AppleKey | null;
  /** Client ids of the project's own apps, whose id tokens count too. */
  appClientIds?: string[];
  scopes: string[];
  /** The exact addresses to which a browser may be sent back; the first is the default. */
  redirectUrls: string[];
  /** Browsers come back with an access token in the address too, behind `#`; of older ones none. */
  tokenInAddress?: boolean;
  createdAt: Date;
  updatedAt: Date;
}

/** Names the key that signs the secret for Apple. */
export interface AppleKey {
  teamId: string;
  keyId: string;
}

export interface SocialProviderInput {
  name: string;
  clientId: string;
  clientSecret: string;
  redirectUrls: string[];
  /** Of `apple` alone, whose `clientSecret` is a private key in PEM. */
  apple?: AppleKey;
  appClientIds?: string[];
  /** Needed for all that are not known by name; for `github` the address of an own one. */
  issuer?: string;
  scopes?: string[];
  tokenInAddress?: boolean;
  /** The issuer was named by who runs the whole service, not by an operator of some projects alone. */
  mayBePrivate?: boolean;
}

const KNOWN_ISSUERS: Record<string, string> = {
  google: 'https://accounts.google.com',
  github: 'https://github.com',
  apple: 'https://appleid.apple.com',
  microsoft: 'https://login.microsoftonline.com/common/v2.0',
  gitlab: 'https://gitlab.com',
  linkedin: 'https://www.linkedin.com/oauth',
};
const APPLE_SCOPES = ['openid', 'email', 'name'];
const APPLE_ID = /^[A-Z0-9]{1,20}$/;
const MAX_CLIENT_IDS = 20;
const DEFAULT_SCOPES = { oidc: ['openid', 'email', 'profile'], github: ['read:user', 'user:email'] };
const PROVIDER_NAME = /^[a-z][a-z0-9-]{0,31}$/;
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/;
const MAX_REDIRECT_URLS = 20;
const MAX_TEXT = 500;

export const socialProviderStore = storeOf<SocialProvider>(SOCIAL_PROVIDERS);

export async function requireSocialProvider(app: App, projectId: ObjectId, name: string): Promise<SocialProvider> {
  const found = PROVIDER_NAME.test(name)
    ? await socialProviderStore(app).findOne({ _id: providerId(projectId, name) })
    : null;
  if (!found) throw missing('PROVIDER_NOT_FOUND', 'The project has no sign-in provider of this name');
  return found;
}

export function listSocialProviders(app: App, project: Project): Promise<SocialProvider[]> {
  return socialProviderStore(app).find({ projectId: project._id }).sort({ name: 1 }).toArray();
}

/** What is stored of a provider's settings, its secret aside. */
export type ProviderSettings = Required<
  Pick<
    SocialProvider,
    'name' | 'kind' | 'issuer' | 'clientId' | 'apple' | 'appClientIds' | 'scopes' | 'redirectUrls' | 'tokenInAddress'
  >
>;

/** The settings that an input leads to. Pure; 400 for what could not work or would send codes astray. */
export function resolveProvider(input: SocialProviderInput): ProviderSettings {
  const { name, clientId, apple = null, appClientIds = [], redirectUrls, tokenInAddress = false } = input;
  const kind = name === 'github' ? 'github' : 'oidc';
  const given = input.issuer ?? findKnownIssuer(name) ?? '';
  // An OpenID issuer is compared with its own word for itself, slash and all; a GitHub's address is only a beginning.
  const issuer = kind === 'github' ? given.replace(/\/+$/, '') : given;
  const scopes = input.scopes?.length ? input.scopes : name === 'apple' ? APPLE_SCOPES : DEFAULT_SCOPES[kind];
  checkInput(input, issuer, scopes);
  return { name, kind, issuer, clientId, apple, appClientIds, scopes, redirectUrls, tokenInAddress };
}

/** The settings of a stored provider. */
export function providerSettings(provider: SocialProvider): ProviderSettings {
  const { name, kind, issuer, clientId, apple = null, appClientIds = [], scopes, redirectUrls } = provider;
  const { tokenInAddress = false } = provider;
  return { name, kind, issuer, clientId, apple, appClientIds, scopes, redirectUrls, tokenInAddress };
}

/** Opened for each use and never kept. */
export function openClientSecret(
  app: Pick<App, 'secrets'>,
  { projectId, name, encryptedSecret }: SocialProvider,
): string {
  return app.secrets.decrypt(encryptedSecret, socialEncryptionContext(projectId, name));
}

/**
 * Adds a provider or replaces its settings by one write; the client secret is encrypted. 400 for what could not work or
 * would send codes astray.
 */
export async function setSocialProvider(
  app: App,
  project: Project,
  input: SocialProviderInput,
): Promise<SocialProvider> {
  const settings = resolveProvider(input);
  // The service talks to this address by itself, so it is judged like a webhook's (decisions.md 8) where an operator of
  // some projects names it.
  if (input.issuer && !input.mayBePrivate) await requirePublicTarget(app.outbound, new URL(settings.issuer), 'issuer');
  const now = new Date(app.clock.now());
  const saved = await socialProviderStore(app).findOneAndUpdate(
    { _id: providerId(project._id, input.name) },
    {
      $set: {
        ...settings,
        projectId: project._id,
        mayBePrivate: input.mayBePrivate === true,
        encryptedSecret: app.secrets.encrypt(input.clientSecret, socialEncryptionContext(project._id, input.name)),
        updatedAt: now,
      },
      $setOnInsert: { createdAt: now },
    },
    { upsert: true, returnDocument: 'after' },
  );
  return saved as SocialProvider;
}

/** The name comes from an address, so it may be one that every object has. */
function findKnownIssuer(name: string): string | undefined {
  return Object.hasOwn(KNOWN_ISSUERS, name) ? KNOWN_ISSUERS[name] : undefined;
}

/** Removes a provider; its users stay and may set a password by mail. 404 for an unknown name. */
export async function removeSocialProvider(app: App, project: Project, name: string): Promise<SocialProvider> {
  const provider = await requireSocialProvider(app, project._id, name);
  await socialProviderStore(app).deleteOne({ _id: provider._id });
  return provider;
}

/** A provider as shown: never its secret. */
export function presentSocialProvider(provider: SocialProvider) {
  const { kind: _, apple, ...settings } = providerSettings(provider);
  const { createdAt, updatedAt } = provider;
  return {
    ...settings,
    ...(apple && { apple }),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

/** Ties an encrypted secret to its place; also used to re-encrypt when the master key changes. */
function socialEncryptionContext(projectId: ObjectId, name: string): string {
  return `project:${projectId.toHexString()}:social:${name}`;
}

const providerId = (projectId: ObjectId, name: string): string => `${projectId.toHexString()}:${name}`;

function checkInput(input: SocialProviderInput, issuer: string, scopes: readonly string[]): void {
  if (!PROVIDER_NAME.test(input.name)) {
    throw refusal('A provider’s name has 1 to 32 lower-case letters, digits or - and starts with a letter');
  }
  if (issuer === '') {
    throw refusal(`Give the issuer of "${input.name}": known by name are ${Object.keys(KNOWN_ISSUERS).join(', ')}`);
  }
  if (!isSafeWebAddress(issuer)) throw refusal('The issuer must be an https address (http on this machine only)');
  if (!isText(input.clientId)) throw refusal('The client id is missing or too long');
  if (!isText(input.clientSecret)) throw refusal('The client secret is missing or too long');
  if (input.apple && input.name !== 'apple') throw refusal('Only apple has a team and a key id');
  if (issuer === KNOWN_ISSUERS.apple && !input.apple) {
    throw refusal('Apple needs the ids of the team and of the key, and its private key as the secret');
  }
  if (input.apple && !(APPLE_ID.test(input.apple.teamId) && APPLE_ID.test(input.apple.keyId))) {
    throw refusal('Apple’s team and key ids have capital letters and digits only');
  }
  if (input.apple && !isEs256Key(input.clientSecret)) {
    throw refusal('The secret of apple is the private key of the file AuthKey_….p8, in PEM');
  }
  const { appClientIds = [] } = input;
  if (appClientIds.length > MAX_CLIENT_IDS || !appClientIds.every(isText)) throw refusal('A client id is not valid');
  if (scopes.length > 20 || !scopes.every((scope) => SCOPE.test(scope))) throw refusal('A scope is not valid');
  if (input.redirectUrls.length === 0 || input.redirectUrls.length > MAX_REDIRECT_URLS) {
    throw refusal(`Give 1 to ${MAX_REDIRECT_URLS} addresses that browsers may be sent back to`);
  }
  for (const url of input.redirectUrls) {
    if (!isRedirectTarget(url)) {
      throw refusal(
        `"${url.slice(0, 100)}" cannot be sent back to: use https, http on this machine, or an app’s own scheme`,
      );
    }
  }
}

function isText(text: string): boolean {
  return text.length > 0 && text.length <= MAX_TEXT;
}

function isEs256Key(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyDetails?.namedCurve === 'prime256v1';
  } catch {
    return false;
  }
}

const refusal = (message: string): Error => invalid('INVALID_PROVIDER', message);

export const ENCRYPTED_SOCIAL_SECRETS: EncryptedPlace = {
  collection: SOCIAL_PROVIDERS,
  fields: (record) => {
    const { projectId, name, encryptedSecret } = record as SocialProvider;
    return [{ path: 'encryptedSecret', encrypted: encryptedSecret, context: socialEncryptionContext(projectId, name) }];
  },
};

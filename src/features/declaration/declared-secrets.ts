import { invalid } from '../../errors.js';
import type { ProjectDeclaration } from './project-declaration.js';
import type { FindSecret, SecretReference } from './secret-reference.js';

/** 400 SECRET_MISSING, with all their names, for variables that are not set. */
export function requireSecrets(declared: readonly ProjectDeclaration[], secretOf: FindSecret): void {
  const names = new Set(declared.flatMap(listReferences).map(({ env }) => env));
  const missing = [...names].filter((name) => !secretOf(name));
  if (missing.length === 0) return;
  const which = missing.length === 1 ? 'The environment variable' : 'The environment variables';
  const are = missing.length === 1 ? 'is not set: set it or write it' : 'are not set: set them or write them';
  throw invalid('SECRET_MISSING', `${which} ${missing.join(', ')} ${are} into .env`);
}

function listReferences({ signIn, mail, storage, webhooks = [] }: ProjectDeclaration): SecretReference[] {
  const single = [mail?.providerKey, mail?.webhookSecret, storage?.bucket?.secretAccessKey];
  return [
    ...(signIn?.providers ?? []).map(({ clientSecret }) => clientSecret),
    ...single.filter((reference) => reference !== undefined && reference !== null),
    ...webhooks.flatMap(({ headers = {} }) => Object.values(headers)),
  ];
}

/** The declaration without what needs a secret, for those who look at its collections alone. */
export function withoutSecrets({ signIn, mail, storage, webhooks, ...rest }: ProjectDeclaration): ProjectDeclaration {
  return {
    ...rest,
    ...(signIn && { signIn: { ...signIn, providers: undefined } }),
    ...(mail && { mail: { from: mail.from, templates: mail.templates } }),
    ...(storage && { storage: { publishableUploads: storage.publishableUploads } }),
    ...(webhooks && { webhooks: webhooks.map((webhook) => ({ ...webhook, headers: undefined })) }),
  };
}

/** How such a declaration is planned. */
export const NO_SECRETS = { prune: false, secretOf: (): undefined => undefined };

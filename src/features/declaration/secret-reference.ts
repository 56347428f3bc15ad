import { invalid } from '../../errors.js';
import { object, text, type TypeOf } from '../../platform/schema/schema.js';
import type { ProjectDeclaration } from './project-declaration.js';

/** A secret as a file has it: by the name of the environment variable that holds it. */
export const SECRET = object({ env: text({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$', maxLength: 200 }) });
export type SecretReference = TypeOf<typeof SECRET>;

/** The value of an environment variable; undefined when it is not set. */
export type SecretSource = (name: string) => string | undefined;

/** The value of a reference. Only for declarations that have passed requireSecrets. */
export function resolveSecret({ env }: SecretReference, secretOf: SecretSource): string {
  return secretOf(env) ?? '';
}

/** 400 SECRET_MISSING, with all their names, for variables that are not set. */
export function requireSecrets(declared: readonly ProjectDeclaration[], secretOf: SecretSource): void {
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

/** Names variables for the secrets of one project, as its exported file refers to them, and notes their values. */
export function nameSecrets(project: string, values: Map<string, string>) {
  return (value: string, ...words: string[]): SecretReference => {
    const plain = [project, ...words]
      .join('_')
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_');
    // A digit begins no name, and what begins with BSVC_ would be taken for a setting.
    const base = /^(\d|BSVC_)/.test(plain) ? `_${plain}` : plain;
    let env = base;
    for (let count = 2; values.has(env); count++) env = `${base}_${count}`;
    values.set(env, value);
    return { env };
  };
}

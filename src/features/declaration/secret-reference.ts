import { object, text, type TypeOf } from '../../platform/schema/schema.js';

/** A secret as a file has it: by the name of the environment variable that holds it. */
export const SECRET = object({ env: text({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$', maxLength: 200 }) });
export type SecretReference = TypeOf<typeof SECRET>;

/** The value of an environment variable; undefined when it is not set. */
export type FindSecret = (name: string) => string | undefined;

/** The value of a reference. Only of declarations that have passed requireSecrets. */
export function resolveSecret({ env }: SecretReference, secretOf: FindSecret): string {
  return secretOf(env) ?? '';
}

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

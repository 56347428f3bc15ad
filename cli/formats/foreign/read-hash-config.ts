import type { FirebaseScryptParameters } from '../../../src/platform/secrets/firebase-scrypt.js';
import { UsageError } from '../../view/exit.js';

/**
 * The password hash parameters of a Firebase project, from the text that its console shows (`base64_signer_key: …,`) or
 * the same names as JSON.
 */
export function readHashConfig(path: string, text: string): FirebaseScryptParameters {
  const parameter = (name: string): string => {
    const [, value] = new RegExp(`"?${name}"?\\s*[:=]\\s*"?([A-Za-z0-9+/=_-]+)"?`).exec(text) ?? [];
    if (value === undefined) {
      throw new UsageError(
        `--hash-config ${path}: there is no ${name}. Firebase shows it under Authentication, Users.`,
      );
    }
    return value;
  };
  const algorithm = parameter('algorithm').toUpperCase();
  if (algorithm !== 'SCRYPT') throw new UsageError(`--hash-config ${path}: the algorithm ${algorithm} is not SCRYPT.`);
  return {
    signerKey: Buffer.from(parameter('base64_signer_key'), 'base64'),
    saltSeparator: Buffer.from(parameter('base64_salt_separator'), 'base64'),
    rounds: Number(parameter('rounds')),
    memCost: Number(parameter('mem_cost')),
  };
}

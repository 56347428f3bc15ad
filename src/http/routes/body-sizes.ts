import type { Config } from '../../config/config.js';
import type { BodyLimit } from '../requests/read-body.js';

/** What the JSON body of a route is: credentials and small forms, one document, or many things at once. */
export type BodySize = 'small' | 'document' | 'many';

const MIB = 1024 * 1024;

/** The limits of a route's JSON body. */
export function bodyLimit({ documentValues, bodyValues }: Config, size: BodySize): BodyLimit {
  if (size === 'small') return { bytes: 16 * 1024, values: 200 };
  return { bytes: MIB, values: size === 'many' ? bodyValues : documentValues };
}

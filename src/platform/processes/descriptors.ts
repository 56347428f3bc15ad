import { readdirSync, readFileSync } from 'node:fs';
import { unavailable } from '../../errors.js';

/** Of what may still be opened, the part for files, reader threads and requests to others. */
const KEPT_SHARE = 1 / 4;
const LEAST_KEPT = 16;
const MOST_KEPT = 1024;
const LEAST_CONNECTIONS = 8;

/**
 * The connections that this process may have, so that descriptors for its files are left (`ulimit -n`); null where the
 * system does not say how many there are. Throws when there are too few to serve.
 */
export function connectionRoom(): number | null {
  const descriptors = countDescriptors();
  if (!descriptors) return null;
  const { limit, open } = descriptors;
  const kept = Math.min(MOST_KEPT, Math.max(LEAST_KEPT, Math.ceil((limit - open) * KEPT_SHARE)));
  const room = limit - open - kept;
  // A few more are accepted to be sent the error.
  const connections = Math.floor((room * 4) / 5);
  if (connections >= LEAST_CONNECTIONS) return connections;
  const wanted = open + LEAST_KEPT + Math.ceil((LEAST_CONNECTIONS * 5) / 4);
  throw unavailable(
    'TOO_FEW_DESCRIPTORS',
    `This process may open only ${limit} files and connections at once: let it open ${wanted} or more ("ulimit -n").`,
  );
}

function countDescriptors(): { limit: number; open: number } | null {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return limit && { limit: Number(limit[1]), open: readdirSync('/proc/self/fd').length };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

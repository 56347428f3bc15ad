import { parseDuration } from '../../../src/config/setting-readers.js';
import { openOperatorSession } from '../../../src/features/operators/open-operator-session.js';
import { option } from '../../shell/command.js';
import { defineOperatorCommand } from './present.js';
import { DAY_MS } from '../../../src/platform/time/clock.js';

const DEFAULT_TTL = '12h';
const MAX_TTL_MS = 366 * DAY_MS;

export default defineOperatorCommand({
  details: `For scripts: a bearer token without a password. It ends after --ttl (default ${DEFAULT_TTL}), or when the operator is removed.`,
  examples: [
    'bsvc operator token ann@example.com --quiet',
    'TOKEN=$(bsvc operator token ann@example.com --ttl 30d --quiet)',
  ],
  audited: true,
  parameters: { ttl: option('--ttl <duration>', `how long it works (default: ${DEFAULT_TTL})`, readTtl) },
  async run(_context, { app, operator, ttl = parseDuration(DEFAULT_TTL) }) {
    const { token, expiresAt } = await openOperatorSession(app, operator, ttl);
    return {
      json: { token, expiresAt: expiresAt.toISOString(), operator: operator._id.toHexString() },
      quiet: token,
      text: () =>
        [
          `Token of ${operator.email}, until ${expiresAt.toISOString()}:`,
          '',
          `  ${token}`,
          '',
          'It is shown this once. Try: curl -H "Authorization: Bearer <token>" <address of the server>/api/projects',
        ].join('\n'),
    };
  },
});

function readTtl(text: string): number {
  const ms = parseDuration(text);
  if (ms < 1000 || ms > MAX_TTL_MS) throw new Error('must be between 1s and 366d');
  return ms;
}

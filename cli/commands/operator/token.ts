import type { App } from '../../../src/app.js';
import { parseDuration } from '../../../src/config/setting-readers.js';
import { openOperatorSession } from '../../../src/features/operators/console-session.js';
import {
  endOperatorSession,
  endOperatorSessions,
  listOperatorSessions,
  presentOperatorSession,
} from '../../../src/features/operators/operator-sessions.js';
import type { Operator } from '../../../src/features/access/operator.js';
import { flag, option } from '../../shell/command.js';
import type { Context } from '../../shell/context.js';
import type { Result } from '../../view/output.js';
import { presentList } from '../../view/present-list.js';
import { defineOperatorCommand } from './present.js';
import { DAY_MS } from '../../../src/platform/time/clock.js';

const DEFAULT_TTL = '12h';
const MAX_TTL_MS = 366 * DAY_MS;

export default defineOperatorCommand({
  details: [
    `For scripts: a bearer token without a password. It ends after --ttl (default ${DEFAULT_TTL}), or when the operator is removed.`,
    '--list shows sessions and tokens. --revoke ends one, or all of them with the links to sign in, in running servers within a second.',
  ].join('\n'),
  examples: [
    'bsvc operator token ann@example.com --quiet',
    'TOKEN=$(bsvc operator token ann@example.com --ttl 30d --quiet)',
    'bsvc operator token ann@example.com --list',
    'bsvc operator token ann@example.com --revoke all',
  ],
  audited: ({ list }) => !list,
  parameters: {
    ttl: option('--ttl <duration>', `how long it works (default: ${DEFAULT_TTL})`, readTtl),
    list: flag('--list', 'list sessions and tokens'),
    revoke: option('--revoke <id|all>', 'end this session or token, or all'),
  },
  async run(context, { app, operator, ttl = parseDuration(DEFAULT_TTL), list, revoke }) {
    if (list || revoke !== undefined) return showSessions(context, app, operator, revoke);
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

async function showSessions(
  context: Context,
  app: App,
  operator: Operator,
  revoke: string | undefined,
): Promise<Result> {
  if (revoke === 'all') {
    const ended = await endOperatorSessions(app, operator);
    context.out.note(`${ended} ${ended === 1 ? 'session has' : 'sessions have'} ended.`);
  } else if (revoke !== undefined) {
    await endOperatorSession(app, operator, revoke);
    context.out.note('1 session has ended.');
  }
  const sessions = (await listOperatorSessions(app, operator)).map(presentOperatorSession);
  return presentList(sessions, {
    name: ({ id }) => id,
    empty: 'No active sessions.',
    head: ['id', 'used', 'ends', 'by', 'opened'],
    row: ({ id, usedAt, expiresAt, createdAt, console }) => [
      id,
      usedAt,
      expiresAt,
      console ? 'console' : 'token',
      createdAt,
    ],
  });
}

function readTtl(text: string): number {
  const ms = parseDuration(text);
  if (ms < 1000 || ms > MAX_TTL_MS) throw new Error('must be between 1s and 366d');
  return ms;
}

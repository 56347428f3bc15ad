import {
  endOperatorSession,
  endOperatorSessions,
  listOperatorSessions,
  presentOperatorSession,
} from '../../../src/features/operators/operator-sessions.js';
import { option } from '../../shell/command.js';
import { presentList } from '../../view/present-list.js';
import { defineOperatorCommand } from './present.js';

export default defineOperatorCommand({
  details:
    'Lists where an operator is signed in, and the tokens given out for scripts. --revoke ends one, or all of them with the links to sign in, in running servers within a second.',
  examples: ['bsvc operator sessions ann@example.com', 'bsvc operator sessions ann@example.com --revoke all'],
  audited: ({ revoke }) => revoke !== undefined,
  parameters: { revoke: option('--revoke <id|all>', 'end this session, or all') },
  async run(context, { app, operator, revoke }) {
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
      empty: 'Signed in nowhere.',
      head: ['id', 'used', 'ends', 'by', 'opened'],
      row: ({ id, usedAt, expiresAt, createdAt, console }) => [
        id,
        usedAt,
        expiresAt,
        console ? 'console' : 'token',
        createdAt,
      ],
    });
  },
});

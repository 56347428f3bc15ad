import { endSession, listSessions, presentSession } from '../../../src/features/users/sessions/list-sessions.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { option } from '../../shell/command.js';
import { presentList } from '../../view/present-list.js';

export default defineUserCommand({
  details: 'Lists where a user is signed in. --revoke ends one session, or all of them.',
  examples: [
    'bsvc user sessions ann@example.com --project shop',
    'bsvc user sessions ann@example.com --project shop --revoke all',
  ],
  audited: ({ revoke }) => revoke !== undefined,
  parameters: {
    revoke: option('--revoke <id|all>', 'end this session, or all'),
  },
  async run(context, { app, project, user, revoke }) {
    if (revoke !== undefined) {
      const ended = await endSession(app, project, user, revoke);
      context.out.note(`${ended} ${ended === 1 ? 'session has' : 'sessions have'} ended.`);
    }
    const sessions = (await listSessions(app, project, user)).map(presentSession);
    return presentList(sessions, {
      name: ({ id }) => id,
      empty: 'No active sessions.',
      head: ['id', 'used', 'ends', 'IP', 'client'],
      row: ({ id, usedAt, expiresAt, ip, userAgent }) => [id, usedAt, expiresAt, ip, userAgent],
    });
  },
});

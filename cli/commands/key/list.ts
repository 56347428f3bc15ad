import { presentKey } from '../../../src/features/projects/present-project.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { presentList } from '../../view/present-list.js';

export default defineProjectCommand({
  examples: ['bsvc key list --project shop', 'bsvc key list --project shop --json'],
  run(context, { app, project }) {
    const keys = project.keys.map((key) => presentKey(key, app.clock.now()));
    return presentList(keys, {
      name: ({ id }) => id,
      empty: 'No keys. Create one with: bsvc key create --type secret',
      head: ['id', 'type', 'ends in', 'state', 'until', 'name', 'last used'],
      row: (key) => [key.id, key.type, key.last4, ...presentState(key), key.name ?? '', key.lastUsedAt ?? 'never'],
    });
  },
});

/** The state of a key, and the moment at which it ends or has ended. */
function presentState({ live, revokedAt, expiresAt }: ReturnType<typeof presentKey>): [string, string | null] {
  if (revokedAt) return ['revoked', revokedAt];
  return [live ? 'active' : 'ended', expiresAt ?? null];
}

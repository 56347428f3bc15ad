import { revokeKey } from '../../../src/features/projects/manage-keys.js';
import { presentKey } from '../../../src/features/projects/present-project.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { argument } from '../../shell/command.js';

export default defineProjectCommand({
  details: 'Takes effect in every process within a second. For a change-over without a gap use "bsvc key rotate".',
  examples: ['bsvc key revoke 665f1c2e9b1d8a0012ab34cd --project shop --yes', 'bsvc key list --project shop'],
  audited: true,
  destroys: ({ keyId }) => ({ what: 'Clients that use this key will be refused at once.', name: keyId }),
  parameters: { keyId: argument('keyId', 'id of the key ("bsvc key list" shows them)') },
  async run(_context, { app, project, keyId }) {
    const key = presentKey(await revokeKey(app, project, keyId), app.clock.now());
    return { json: { key }, quiet: key.id, text: () => `Key ${key.id} (${key.type}, …${key.last4}) is revoked.` };
  },
});

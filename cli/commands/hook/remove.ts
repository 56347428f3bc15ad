import { presentAfter, presentHook, removeAfter, removeHook } from '../../../src/features/hooks/change-hooks.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { eventArgument } from './add.js';

export default defineProjectCommand({
  details: 'What it was asked about goes on without it. The log of its calls goes too.',
  examples: ['bsvc hook remove orders.create --project shop --yes'],
  audited: true,
  destroys: ({ event }) => ({ what: 'Removes the hook and the log of its calls.', name: event }),
  parameters: { event: eventArgument },
  async run(_context, { app, project, event }) {
    const hook = event.startsWith('after.')
      ? presentAfter(event, await removeAfter(app, project, event))
      : presentHook(app, project, await removeHook(app, project, event));
    return { json: hook, quiet: hook.id, text: () => `The hook of ${hook.event} is removed.` };
  },
});

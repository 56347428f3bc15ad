import { listAfter, presentAfter, presentHook } from '../../../src/features/hooks/change-hooks.js';
import { listCalls } from '../../../src/features/hooks/call-log.js';
import { presentDelivery } from '../../../src/features/webhooks/present-webhook.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { presentList } from '../../view/present-list.js';

type Shown = ReturnType<typeof presentHook> | ReturnType<typeof presentAfter>;

const SHOWN_CALLS = 20;

export default defineProjectCommand({
  details: 'Calls are kept for a day; --json shows the last of each with status, time and the beginning of the answer.',
  examples: ['bsvc hook list --project shop', 'bsvc hook list --project shop --json'],
  async run(_context, { app, project }) {
    const hooks: (Shown & { calls: ReturnType<typeof presentDelivery>[] })[] = [];
    for (const hook of project.hooks ?? []) {
      const calls = (await listCalls(app, hook.id, SHOWN_CALLS)).map(presentDelivery);
      hooks.push({ ...presentHook(app, project, hook), calls });
    }
    for (const { event, ...webhook } of await listAfter(app, project)) {
      const calls = (await listCalls(app, webhook.id, SHOWN_CALLS)).map(presentDelivery);
      hooks.push({ ...presentAfter(event, webhook), calls });
    }
    return {
      ...presentList(hooks, {
        name: ({ event }) => event,
        empty: 'No hooks yet. Add one with: bsvc hook add <event> --url <url>',
        head: ['event', 'calls', 'on failure', 'timeout', 'last call', 'last answer'],
        row: ({ event, url, run, onFailure, timeoutMs, calls }) => {
          const last = calls[0]?.attempts[0];
          return [event, url ?? run, onFailure, `${timeoutMs} ms`, last?.at, last && (last.error ?? last.status)];
        },
      }),
      json: hooks,
    };
  },
});

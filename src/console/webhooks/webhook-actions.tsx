import { useState } from 'preact/hooks';
import { call, prepare, type Prepared } from '../api.js';
import { below, type Address, type DataOf } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { number } from '../format.js';
import { invalidate } from '../load.js';
import { attempt } from '../parts/basics.js';
import { Confirm, Secret } from '../parts/confirm.js';
import { Tick } from '../parts/form.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';

export type WebhookPath = Address<'/api/projects/{projectId}/webhooks/{id}'>;
type Deliveries = DataOf<'GET', '/api/projects/{projectId}/webhooks/{id}/deliveries'>;

/** Of one click: each is a request. */
const MAX_REPLAYED = 500;

/** Tries the newest failed deliveries again, one by one; says how many. */
async function replayFailed(base: WebhookPath): Promise<string> {
  const deliveries = below(base, '/deliveries');
  const failed: string[] = [];
  let before: string | null = null;
  do {
    const listed: Deliveries = await call('GET', deliveries, { query: { state: 'failed', before } });
    failed.push(...listed.items.map(({ id }) => id));
    before = listed.next;
  } while (before !== null && failed.length < MAX_REPLAYED);
  for (const deliveryId of failed.slice(0, MAX_REPLAYED)) {
    await call('POST', below(deliveries, '/{deliveryId}/replay', { deliveryId }));
  }
  const { length } = failed.slice(0, MAX_REPLAYED);
  const more = before === null ? '' : `, the newest ${MAX_REPLAYED} of more`;
  return `${length === 1 ? '1 delivery is' : `${length} deliveries are`} tried again${more}`;
}

type Asked = 'secret' | 'disable' | 'remove';

/** What can be done with a webhook. */
export function WebhookActions({
  base,
  webhook: { enabled, url },
  waiting,
  hasFailed,
}: {
  base: WebhookPath;
  webhook: ApiSchemas['Webhook'];
  /** Deliveries that have not been answered yet. */
  waiting: number;
  hasFailed: boolean;
}) {
  const [secret, setSecret] = useState<string | null>(null);
  const [asked, ask] = useState<Asked | null>(null);
  const [keeps, setKeeps] = useState(false);
  const [busy, setBusy] = useState(false);
  const close = (): void => ask(null);
  const run = async (work: () => Promise<string>): Promise<void> => {
    setBusy(true);
    await attempt(async () => {
      const text = await work();
      invalidate(below(base, '/counts'));
      return text;
    });
    setBusy(false);
  };
  const test = async (): Promise<string> =>
    (await call('POST', below(base, '/test'))).state === 'delivered'
      ? 'The test event was delivered'
      : 'The test event was not delivered';
  const enable = async (wanted: boolean): Promise<string> => {
    await call('PATCH', base, { body: { enabled: wanted } });
    return wanted ? 'The webhook is enabled' : 'The webhook is disabled';
  };
  const mayDisableAtOnce = enabled && waiting === 0;
  const those = waiting === 1 ? '1 waiting delivery' : `${number(waiting)} waiting deliveries`;
  return (
    <div class="row">
      <button disabled={busy} onClick={() => void run(test)}>
        Send a test
      </button>
      <a class="button" href={linkHere({ edit: '1' })}>
        Edit…
      </a>
      <button
        disabled={busy}
        onClick={() => (mayDisableAtOnce || !enabled ? void run(() => enable(!enabled)) : ask('disable'))}
      >
        {!enabled ? 'Enable' : mayDisableAtOnce ? 'Disable' : 'Disable…'}
      </button>
      {hasFailed && (
        <button disabled={busy} onClick={() => void run(() => replayFailed(base))}>
          Try all failed again
        </button>
      )}
      <button disabled={busy} onClick={() => ask('secret')}>
        New secret…
      </button>
      <button class="danger" disabled={busy} onClick={() => ask('remove')}>
        Remove…
      </button>
      {asked === 'disable' && (
        <Confirm
          title="Disable the webhook"
          text={`${those} will count as failed, unless kept: then they go out when it is enabled, within 30 days.`}
          request={prepare('PATCH', base, { body: { enabled: false, waiting: keeps ? 'keep' : 'drop' } })}
          done="The webhook is disabled"
          onClose={close}
          onDone={() => invalidate(below(base, '/counts'))}
        >
          <Tick label="Keep pending deliveries" value={keeps} onChange={setKeeps} />
        </Confirm>
      )}
      {asked === 'remove' && (
        <Confirm
          title="Remove the webhook"
          text="This permanently deletes the webhook and its deliveries."
          name={new URL(url).host}
          request={prepare('DELETE', base)}
          onClose={close}
          onDone={() => goTo(linkTo(['p', place.value.parts[1] ?? '', 'webhooks']))}
        />
      )}
      {asked === 'secret' && (
        <Confirm
          title="Make a new secret"
          text="New deliveries are signed with it. The old secret stays valid for 24 hours."
          asksPassword
          request={prepare('POST', below(base, '/rotate-secret'))}
          onClose={close}
          onDone={(made) => setSecret(made.secret)}
        />
      )}
      {secret !== null && <Secret what="Secret" value={secret} onClose={() => setSecret(null)} />}
    </div>
  );
}

export const requestsOf = (base: WebhookPath, { enabled }: ApiSchemas['Webhook']): Prepared[] => [
  prepare('POST', below(base, '/test')),
  prepare('PATCH', base, { body: { enabled: !enabled } }),
  prepare('POST', below(base, '/rotate-secret')),
  prepare('DELETE', base),
];

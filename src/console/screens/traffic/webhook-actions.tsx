import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address, type DataOf } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { number } from '../../format.js';
import { attempt } from '../../parts/basics.js';
import { type CommandLine, ofProject } from '../../parts/commands.js';
import { Confirm, Secret } from '../../parts/confirm.js';
import { Tick } from '../../parts/form.js';
import { goTo, linkHere, linkTo, place } from '../../routes.js';

type OneWebhook = Address<'/api/projects/{projectId}/webhooks/{id}'>;
type Deliveries = DataOf<'GET', '/api/projects/{projectId}/webhooks/{id}/deliveries'>;

/** Of one click: each is a request. */
const MAX_REPLAYED = 500;

/** Tries the newest failed deliveries again, one by one; says how many. */
async function replayFailed(base: OneWebhook): Promise<string> {
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

type Question = 'secret' | 'disable' | 'remove';

/** What can be done with a webhook. */
export function WebhookActions({
  base,
  webhook: { enabled, url },
  waiting,
  hasFailed,
  onChange,
}: {
  base: OneWebhook;
  webhook: ApiSchemas['Webhook'];
  /** Deliveries that have not been answered yet. */
  waiting: number;
  hasFailed: boolean;
  onChange: () => void;
}) {
  const [secret, setSecret] = useState<string | null>(null);
  const [asked, ask] = useState<Question | null>(null);
  const [busy, setBusy] = useState(false);
  const run = async (work: () => Promise<string>): Promise<void> => {
    setBusy(true);
    await attempt(async () => {
      const text = await work();
      onChange();
      return text;
    });
    setBusy(false);
  };
  const test = async (): Promise<string> =>
    (await call('POST', below(base, '/test'))).state === 'delivered'
      ? 'The test event was delivered'
      : 'The test event was not delivered';
  const enable = async (wanted: boolean, waiting?: 'keep' | 'drop'): Promise<string> => {
    await call('PATCH', base, { body: { enabled: wanted, ...(waiting && { waiting }) } });
    return wanted ? 'The webhook is enabled' : 'The webhook is disabled';
  };
  const mayDisableAtOnce = enabled && waiting === 0;
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
      {asked && (
        <Asked
          what={asked}
          base={base}
          host={new URL(url).host}
          waiting={waiting}
          onClose={() => ask(null)}
          onDisable={(keeps) => run(() => enable(false, keeps ? 'keep' : 'drop'))}
          onRemoved={onChange}
          onSecret={setSecret}
        />
      )}
      {secret !== null && <Secret what="Secret" value={secret} onClose={() => setSecret(null)} />}
    </div>
  );
}

function Asked({
  what,
  base,
  host,
  waiting,
  onClose,
  onDisable,
  onRemoved,
  onSecret,
}: {
  what: Question;
  base: OneWebhook;
  host: string;
  waiting: number;
  onClose: () => void;
  onDisable: (keeps: boolean) => Promise<void>;
  onRemoved: () => void;
  onSecret: (secret: string) => void;
}) {
  const [keeps, setKeeps] = useState(false);
  if (what === 'disable') {
    const those = waiting === 1 ? '1 waiting delivery' : `${number(waiting)} waiting deliveries`;
    return (
      <Confirm
        title="Disable the webhook"
        text={`${those} will count as failed, unless kept: then they go out when it is enabled, within 30 days.`}
        action="Disable the webhook"
        onClose={onClose}
        onConfirm={async () => {
          await onDisable(keeps);
          onClose();
        }}
      >
        <Tick label="Keep what waits" isOn={keeps} onTick={setKeeps} />
      </Confirm>
    );
  }
  if (what === 'remove') {
    return (
      <Confirm
        title="Remove the webhook"
        text="For good, with its deliveries. Nothing is sent to it any more."
        name={host}
        action="Remove the webhook"
        onClose={onClose}
        onConfirm={async () => {
          await call('DELETE', base);
          goTo(linkTo(['p', place.value.parts[1] ?? '', 'webhooks']));
          onRemoved();
        }}
      />
    );
  }
  return (
    <Confirm
      title="Make a new secret"
      text="Deliveries are signed with it from now on; the old secret counts for 24 hours more."
      asksPassword
      action="Make a new secret"
      onClose={onClose}
      onConfirm={async () => {
        onSecret((await call('POST', below(base, '/rotate-secret'))).secret);
        onClose();
      }}
    />
  );
}

/** The same as commands and requests. */
export function commandsOf(base: OneWebhook, { id, enabled }: ApiSchemas['Webhook']): CommandLine[] {
  const cli = (words: string, more = ''): string => `bsvc webhook ${words} ${id} ${ofProject()}${more}`;
  return [
    { name: 'Send a test', cli: cli('test'), method: 'POST', path: below(base, '/test') },
    {
      name: enabled ? 'Disable' : 'Enable',
      cli: cli('edit', enabled ? ' --disable' : ' --enable'),
      method: 'PATCH',
      path: base,
      body: { enabled: !enabled },
    },
    { name: 'New secret', cli: cli('rotate-secret'), method: 'POST', path: below(base, '/rotate-secret') },
    { name: 'Remove', cli: cli('remove'), method: 'DELETE', path: base },
  ];
}

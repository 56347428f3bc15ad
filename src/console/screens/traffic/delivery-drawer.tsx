import { below, type Address } from '../../api-paths.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { Trouble } from '../../parts/basics.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Drawer } from '../../parts/drawer.js';
import { goTo, linkHere } from '../../routes.js';
import { mayChange } from '../../session.js';

/** One delivery: what was sent, and what each attempt was answered. */
export function DeliveryDrawer({
  base,
  id,
  webhook,
  onReplay,
}: {
  base: Address<'/api/projects/{projectId}/webhooks/{id}'>;
  id: string;
  webhook: string;
  onReplay: (id: string) => Promise<void>;
}) {
  const path = below(base, '/deliveries/{deliveryId}', { deliveryId: id });
  const { data, error, reload } = useLoad(path);
  return (
    <Drawer title={data ? `${data.event}: ${data.state}` : 'Delivery'} onClose={() => goTo(linkHere({ open: null }))}>
      <Trouble error={error} onRetry={reload} />
      {data && (
        <>
          {mayChange.value && data.body !== null && (
            <p>
              <button onClick={() => void onReplay(id).then(reload)}>Try again</button>
            </p>
          )}
          <h3>Attempts</h3>
          {data.attempts.length === 0 && <p>None yet.</p>}
          <ol>
            {data.attempts.map((attempt) => (
              <li key={attempt.at}>
                {moment(attempt.at)}, {attempt.durationMs} ms: {attempt.error ?? `answered ${String(attempt.status)}`}
                {attempt.response !== '' && <pre tabIndex={0}>{attempt.response}</pre>}
              </li>
            ))}
          </ol>
          <h3>Sent</h3>
          {data.body === null ? (
            <p class="empty">What was sent is no longer kept.</p>
          ) : (
            <pre tabIndex={0}>{indent(data.body)}</pre>
          )}
        </>
      )}
      <Commands
        cli={`bsvc webhook replay ${webhook} ${quote(id)} ${ofProject()}`}
        method="POST"
        path={below(path, '/replay')}
      />
    </Drawer>
  );
}

function indent(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say } from '../../parts/basics.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Empty } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';
import { ProviderDrawer } from './provider-drawer.js';

const NEW = ':new';

/** Services whose accounts open an account here. */
export function Providers({ base }: { base: Address<'/api/projects/{projectId}/social'> }) {
  const list = useLoad(base);
  const open = place.value.query.get('provider');
  const stored = list.data?.items.find(({ name }) => name === open);
  const [removing, setRemoving] = useState<string | null>(null);
  const close = (): void => goTo(linkHere({ provider: null }));
  return (
    <>
      <div class="head">
        <h2>Providers</h2>
        {mayChange.value && (
          <div class="acts">
            <a class="button" href={linkHere({ provider: NEW })}>
              Add a provider…
            </a>
          </div>
        )}
      </div>
      <List
        label="Providers"
        of={list}
        keyOf={({ name }) => name}
        empty={
          <Empty title="No providers">
            <p>With one, users sign in by Google, GitHub or any service that speaks OpenID Connect.</p>
          </Empty>
        }
        columns={[
          {
            name: 'Name',
            show: ({ name }) => (
              <a class="opens" href={linkHere({ provider: name })}>
                {name}
              </a>
            ),
          },
          { name: 'Issuer', show: ({ issuer }) => issuer },
          { name: 'Client id', show: ({ clientId }) => <code>{clientId}</code> },
          { name: 'Changed', show: ({ updatedAt }) => moment(updatedAt) },
          {
            name: 'Remove',
            show: ({ name }) =>
              mayChange.value ? (
                <button class="small danger" aria-label={`Remove ${name}`} onClick={() => setRemoving(name)}>
                  Remove…
                </button>
              ) : null,
          },
        ]}
      />
      <Commands cli={`bsvc user social list ${ofProject()}`} path={base} />
      {open && mayChange.value && (open === NEW || stored) && (
        <ProviderDrawer
          base={base}
          stored={stored ?? null}
          onClose={close}
          onSaved={() => {
            list.reload();
            close();
          }}
        />
      )}
      {removing !== null && (
        <RemoveProvider
          name={removing}
          path={below(base, '/{provider}', { provider: removing })}
          onClose={() => setRemoving(null)}
          onDone={() => {
            setRemoving(null);
            list.reload();
          }}
        />
      )}
    </>
  );
}

function RemoveProvider({
  name,
  path,
  onClose,
  onDone,
}: {
  name: string;
  path: Address<'/api/projects/{projectId}/social/{provider}'>;
  onClose: () => void;
  onDone: () => void;
}) {
  return (
    <Confirm
      title="Remove the provider"
      text="Nobody signs in by it any more; accounts that it opened stay."
      name={name}
      action="Remove the provider"
      commands={{ cli: `bsvc user social remove ${quote(name)} ${ofProject()}`, method: 'DELETE', path }}
      onClose={onClose}
      onConfirm={async () => {
        await call('DELETE', path);
        say('The provider is removed');
        onDone();
      }}
    />
  );
}

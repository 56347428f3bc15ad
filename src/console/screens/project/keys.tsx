import { useState } from 'preact/hooks';
import { api } from '../../api.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say, tellRefusal } from '../../parts/basics.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Confirm, Secret } from '../../parts/confirm.js';
import { Field } from '../../parts/form.js';
import { PageHead } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { place } from '../../routes.js';
import { mayChange } from '../../session.js';

interface Key {
  id: string;
  type: 'publishable' | 'secret';
  name: string | null;
  last4: string;
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
  live: boolean;
}

const ROTATION = { type: 'secret', grace: '24h' };

/** API keys of a project. */
export function Keys() {
  const base = `/api/projects/${place.value.parts[1] ?? ''}/keys`;
  const list = useLoad<{ items: Key[] }>(base);
  const { reload } = list;
  const [made, setMade] = useState<string | null>(null);
  const [name, setName] = useState('');
  const called = name.trim() === '' ? {} : { name: name.trim() };
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [isRotating, setRotating] = useState(false);
  const create = async (path: string, body: object): Promise<void> => {
    setMade((await api<{ value: string }>('POST', path, body)).value);
    setName('');
    reload();
  };
  const make = (type: Key['type']): void => void create(base, { type, ...called }).catch(tellRefusal);
  return (
    <>
      <PageHead title="API keys" count={list.data?.items.filter(({ live }) => live).length} />
      <List
        label="Keys"
        of={list}
        keyOf={(key) => key.id}
        empty="No keys."
        columns={[
          { name: 'Type', show: ({ type }) => type },
          { name: 'Name', show: ({ name }) => name ?? '' },
          { name: 'Ends with', show: ({ last4 }) => <code>…{last4}</code> },
          { name: 'Last used', show: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : moment(lastUsedAt)) },
          { name: 'Created', show: ({ createdAt }) => moment(createdAt) },
          {
            name: 'State',
            show: (key) =>
              key.live ? key.expiresAt ? `until ${moment(key.expiresAt)}` : 'active' : <span class="muted">ended</span>,
          },
          {
            name: 'Revoke',
            show: (key) =>
              mayChange.value && key.live ? (
                <button
                  class="small danger opens"
                  aria-label={`Revoke the key ending with ${key.last4}`}
                  onClick={() => setRevoking(key)}
                >
                  Revoke…
                </button>
              ) : null,
          },
        ]}
      />
      {mayChange.value && (
        <p class="row">
          <Field label="Name of a new key" value={name} onText={setName} />
          <button onClick={() => make('publishable')}>New publishable key</button>
          <button onClick={() => make('secret')}>New secret key</button>
          <button onClick={() => setRotating(true)}>Rotate the secret key…</button>
        </p>
      )}
      <Commands
        name="List"
        cli={`bsvc key list ${ofProject()}`}
        path={base}
        more={
          mayChange.value
            ? [
                {
                  name: 'New key',
                  cli: `bsvc key create ${ofProject()} --type secret${name.trim() && ` --name ${quote(name.trim())}`}`,
                  method: 'POST',
                  path: base,
                  body: { type: 'secret', ...called },
                },
                {
                  name: 'Rotate',
                  cli: `bsvc key rotate ${ofProject()} --type secret --grace 24h`,
                  method: 'POST',
                  path: `${base}/rotate`,
                  body: ROTATION,
                },
              ]
            : []
        }
      />
      {isRotating && (
        <Confirm
          title="Rotate the secret key"
          text="There will be a new one; those that are in use end in 24 hours."
          asksPassword
          action="Rotate the secret key"
          onClose={() => setRotating(false)}
          onConfirm={async () => {
            await create(`${base}/rotate`, ROTATION);
            setRotating(false);
          }}
        />
      )}
      {made !== null && <Secret what="Key" value={made} onClose={() => setMade(null)} />}
      {revoking && (
        <Confirm
          title="Revoke the key"
          text="Requests with it are refused at once."
          name={revoking.last4}
          commands={{
            cli: `bsvc key revoke ${revoking.id} ${ofProject()}`,
            method: 'DELETE',
            path: `${base}/${revoking.id}`,
          }}
          action="Revoke the key"
          onClose={() => setRevoking(null)}
          onConfirm={async () => {
            await api('DELETE', `${base}/${revoking.id}`);
            say('The key is revoked');
            setRevoking(null);
            reload();
          }}
        />
      )}
    </>
  );
}

import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { type Address, below, pathTo } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say, tellRefusal } from '../../parts/basics.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Confirm, Secret } from '../../parts/confirm.js';
import { Field } from '../../parts/form.js';
import { PageHead } from '../../parts/page-head.js';
import { type Column, List } from '../../parts/table.js';
import { place } from '../../routes.js';
import { mayChange } from '../../session.js';

type Key = ApiSchemas['Key'];
type KeysAddress = Address<'/api/projects/{projectId}/keys'>;

const ROTATION = { type: 'secret', grace: '24h' } as const;

const COLUMNS: readonly Column<Key>[] = [
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
];

/** API keys of a project. */
export function Keys() {
  const base = pathTo('/api/projects/{projectId}/keys', { projectId: place.value.parts[1] ?? '' });
  const list = useLoad(base);
  const { reload } = list;
  const [made, setMade] = useState<string | null>(null);
  const [name, setName] = useState('');
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [isRotating, setRotating] = useState(false);
  const show = ({ value }: ApiSchemas['CreatedKey']): void => {
    setMade(value);
    setName('');
    reload();
  };
  const make = (type: Key['type']): void =>
    void call('POST', base, { body: bodyOf(type, name) }).then(show, tellRefusal);
  return (
    <>
      <PageHead title="API keys" count={list.data?.items.filter(({ live }) => live).length} />
      <List
        label="Keys"
        of={list}
        keyOf={(key) => key.id}
        empty="No keys."
        columns={[
          ...COLUMNS,
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
      <KeyCommands base={base} name={name} />
      {isRotating && (
        <Confirm
          title="Rotate the secret key"
          text="There will be a new one; those that are in use end in 24 hours."
          asksPassword
          action="Rotate the secret key"
          onClose={() => setRotating(false)}
          onConfirm={async () => {
            show(await call('POST', below(base, '/rotate'), { body: ROTATION }));
            setRotating(false);
          }}
        />
      )}
      {made !== null && <Secret what="Key" value={made} onClose={() => setMade(null)} />}
      {revoking && <Revoke revoked={revoking} base={base} onClose={() => setRevoking(null)} onDone={reload} />}
    </>
  );
}

const bodyOf = (type: Key['type'], name: string): { type: Key['type']; name?: string } =>
  name.trim() === '' ? { type } : { type, name: name.trim() };

function KeyCommands({ base, name }: { base: KeysAddress; name: string }) {
  const create = {
    name: 'New key',
    cli: `bsvc key create ${ofProject()} --type secret${name.trim() && ` --name ${quote(name.trim())}`}`,
    method: 'POST',
    path: base,
    body: bodyOf('secret', name),
  } as const;
  const rotate = {
    name: 'Rotate',
    cli: `bsvc key rotate ${ofProject()} --type secret --grace 24h`,
    method: 'POST',
    path: below(base, '/rotate'),
    body: ROTATION,
  } as const;
  const more = mayChange.value ? [create, rotate] : [];
  return <Commands name="List" cli={`bsvc key list ${ofProject()}`} path={base} more={more} />;
}

interface RevokeProps {
  revoked: Key;
  base: KeysAddress;
  onClose: () => void;
  onDone: () => void;
}

function Revoke({ revoked: { id, last4 }, base, onClose, onDone }: RevokeProps) {
  const path = below(base, '/{keyId}', { keyId: id });
  return (
    <Confirm
      title="Revoke the key"
      text="Requests with it are refused at once."
      name={last4}
      commands={{ cli: `bsvc key revoke ${id} ${ofProject()}`, method: 'DELETE', path }}
      action="Revoke the key"
      onClose={onClose}
      onConfirm={async () => {
        await call('DELETE', path);
        say('The key is revoked');
        onClose();
        onDone();
      }}
    />
  );
}

import { useState } from 'preact/hooks';
import { call, prepare } from '../api.js';
import { below } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { invalidate, useLoad } from '../load.js';
import { showError } from '../parts/basics.js';
import { Confirm, Secret } from '../parts/confirm.js';
import { CrudScreen } from '../parts/crud-screen.js';
import { Field } from '../parts/form.js';
import { mayChange, projectPath } from '../session.js';

type Key = ApiSchemas['Key'];

/** API keys of a project. */
export function Keys() {
  const base = below(projectPath(), '/keys');
  const list = useLoad(base);
  const [made, setMade] = useState<string | null>(null);
  const [name, setName] = useState('');
  const [isRotating, setRotating] = useState(false);
  const show = ({ value }: ApiSchemas['CreatedKey']): void => {
    setMade(value);
    setName('');
    invalidate(base);
  };
  const bodyOf = (type: Key['type']) => (name.trim() === '' ? { type } : { type, name: name.trim() });
  const make = (type: Key['type']): void => void call('POST', base, { body: bodyOf(type) }).then(show, showError);
  const rotation = prepare('POST', below(base, '/rotate'), { body: { type: 'secret', grace: '24h' } });
  return (
    <>
      <CrudScreen
        title="API keys"
        label="Keys"
        count={list.data?.items.filter(({ live }) => live).length}
        list={list}
        keyOf={({ id }) => id}
        empty="No keys."
        columns={[
          { name: 'Type', show: ({ type }) => type },
          { name: 'Name', show: (key) => key.name ?? '' },
          { name: 'Ends with', show: ({ last4 }) => <code>…{last4}</code> },
          { name: 'Last used', show: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : moment(lastUsedAt)) },
          { name: 'Created', show: ({ createdAt }) => moment(createdAt) },
          {
            name: 'State',
            show: ({ live, expiresAt }) =>
              live ? expiresAt ? `until ${moment(expiresAt)}` : 'active' : <span class="muted">ended</span>,
          },
        ]}
        more={[prepare('POST', base, { body: bodyOf('secret') }), rotation]}
        remove={({ id, last4, live }) =>
          live
            ? {
                title: 'Revoke the key',
                label: `Revoke the key ending with ${last4}`,
                text: 'Requests with it are rejected immediately.',
                name: last4,
                request: prepare('DELETE', below(base, '/{keyId}', { keyId: id })),
                done: 'The key is revoked',
              }
            : null
        }
      />
      {mayChange.value && (
        <p class="row">
          <Field label="Name of a new key" value={name} onChange={setName} />
          <button onClick={() => make('publishable')}>New publishable key</button>
          <button onClick={() => make('secret')}>New secret key</button>
          <button onClick={() => setRotating(true)}>Rotate the secret key…</button>
        </p>
      )}
      {isRotating && (
        <Confirm
          title="Rotate the secret key"
          text="A new key is created. Current keys stay valid for 24 hours."
          asksPassword
          request={rotation}
          onClose={() => setRotating(false)}
          onDone={show}
        />
      )}
      {made !== null && <Secret what="Key" value={made} onClose={() => setMade(null)} />}
    </>
  );
}

import { useState } from 'preact/hooks';
import { api } from '../api.js';
import { bytes, moment, number } from '../format.js';
import { useLoad } from '../load.js';
import { Commands, ConfirmByName, Copy, Dialog, quote, say, tellRefusal, Trouble } from '../parts/basics.js';
import { Field } from '../parts/form.js';
import { Table } from '../parts/table.js';
import { place } from '../routes.js';
import { mayChange, project } from '../session.js';

interface Key {
  id: string;
  type: 'publishable' | 'secret';
  name: string | null;
  last4: string;
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  live: boolean;
}

interface Details {
  id: string;
  name: string;
  plan: string;
  allowedDomains: string[];
}

interface Usage {
  documents: number;
  collections: { name: string; documents: number; trashed: number }[];
  storage: { usedBytes?: number; bytes?: number };
  mail: { used?: number };
  webhooks: number;
  limits: Record<string, number | null>;
}

export function Settings() {
  const id = place.value.parts[1] ?? '';
  const base = `/api/projects/${id}`;
  const details = useLoad<Details>(base);
  const named = quote(project.value?.name ?? '');
  return (
    <>
      <h1>Keys and project</h1>
      <Trouble error={details.error} onRetry={details.reload} />
      {details.data && (
        <dl class="pairs">
          <dt>Name</dt>
          <dd>{details.data.name}</dd>
          <dt>Id</dt>
          <dd>
            <code>{details.data.id}</code> <Copy text={details.data.id} what="Id" />
          </dd>
          <dt>Plan</dt>
          <dd>{details.data.plan}</dd>
          <dt>Allowed origins</dt>
          <dd>{details.data.allowedDomains.join(', ') || 'none'}</dd>
        </dl>
      )}
      <Commands cli={`bsvc project show ${named}`} path={base} />
      <Keys base={`${base}/keys`} named={named} />
      <UsageOf base={base} named={named} />
    </>
  );
}

function Keys({ base, named }: { base: string; named: string }) {
  const { data, error, loading, reload } = useLoad<{ items: Key[] }>(base);
  const [made, setMade] = useState<string | null>(null);
  const [name, setName] = useState('');
  const called = name.trim() === '' ? {} : { name: name.trim() };
  const [revoking, setRevoking] = useState<Key | null>(null);
  const make = async (path: string, body: object): Promise<void> => {
    try {
      setMade((await api<{ value: string }>('POST', path, body)).value);
      setName('');
      reload();
    } catch (refusal) {
      tellRefusal(refusal);
    }
  };
  return (
    <>
      <h2>Keys</h2>
      <Trouble error={error} onRetry={reload} />
      <Table
        label="Keys"
        loading={loading}
        rows={data?.items ?? null}
        keyOf={(key) => key.id}
        empty="No keys."
        columns={[
          { name: 'Type', show: ({ type }) => type },
          { name: 'Name', show: ({ name }) => name ?? '' },
          { name: 'Ends with', show: ({ last4 }) => <code>…{last4}</code> },
          { name: 'Since', show: ({ createdAt }) => moment(createdAt) },
          {
            name: 'State',
            show: (key) =>
              key.live ? key.expiresAt ? `until ${moment(key.expiresAt)}` : 'works' : <span class="muted">ended</span>,
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
          <button onClick={() => void make(base, { type: 'publishable', ...called })}>New publishable key</button>
          <button onClick={() => void make(base, { type: 'secret', ...called })}>New secret key</button>
          <button onClick={() => void make(`${base}/rotate`, { type: 'secret', grace: '24h' })}>
            Rotate the secret key, 24 h grace
          </button>
        </p>
      )}
      {mayChange.value && (
        <Commands
          cli={`bsvc key create --project ${named} --type secret${name.trim() && ` --name ${quote(name.trim())}`}`}
          method="POST"
          path={base}
          body={{ type: 'secret', ...called }}
        />
      )}
      <Commands
        cli={`bsvc key rotate --project ${named} --type secret --grace 24h`}
        method="POST"
        path={`${base}/rotate`}
        body={{ type: 'secret', grace: '24h' }}
      />
      {made !== null && (
        <Dialog title="The new key" onClose={() => setMade(null)}>
          <p>It is shown only now.</p>
          <p>
            <code>{made}</code> <Copy text={made} what="Key" />
          </p>
        </Dialog>
      )}
      {revoking && (
        <ConfirmByName
          title="Revoke the key"
          text={`Requests with it are refused at once: bsvc key revoke ${revoking.id} --project ${named}`}
          name={revoking.last4}
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

/** Counts every collection, so only when somebody asks. */
function UsageOf({ base, named }: { base: string; named: string }) {
  const [asked, setAsked] = useState(false);
  const { data, error, loading, reload } = useLoad<Usage>(asked ? `${base}/usage` : null);
  return (
    <>
      <h2>Usage</h2>
      {!asked && <button onClick={() => setAsked(true)}>Count what it uses</button>}
      <Trouble error={error} onRetry={reload} />
      {asked && !data && loading && <p class="empty">Counting…</p>}
      {data && (
        <>
          <dl class="pairs">
            <dt>Documents</dt>
            <dd>{number(data.documents)}</dd>
            <dt>Files</dt>
            <dd>
              {bytes(data.storage.usedBytes ?? data.storage.bytes)} of{' '}
              {data.limits.storage === null ? 'any number' : bytes(data.limits.storage)}
            </dd>
            <dt>Webhooks</dt>
            <dd>
              {data.webhooks} of {data.limits.webhooks ?? 'any number'}
            </dd>
          </dl>
          <Table
            label="Documents by collection"
            loading={false}
            rows={data.collections}
            keyOf={({ name }) => name}
            empty="No collections."
            columns={[
              { name: 'Collection', show: ({ name }) => name },
              { name: 'Documents', isNumber: true, show: ({ documents }) => number(documents) },
              { name: 'In the trash', isNumber: true, show: ({ trashed }) => number(trashed) },
            ]}
          />
        </>
      )}
      <Commands cli={`bsvc project usage ${named}`} path={`${base}/usage`} />
    </>
  );
}

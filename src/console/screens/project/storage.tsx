import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, pathTo, type Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say, Trouble, useAction } from '../../parts/basics.js';
import { Commands, ofProject } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Empty, PageHead } from '../../parts/page-head.js';
import { Table } from '../../parts/table.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';
import { BucketDrawer, type OwnBucket } from './bucket-drawer.js';

/** Where new files of a project go. */
export function Storage() {
  const base = pathTo('/api/projects/{projectId}/bucket', { projectId: place.value.parts[1] ?? '' });
  const { data, error, reload } = useLoad(base);
  const [isClearing, setClearing] = useState(false);
  const close = (): void => goTo(linkHere({ edit: null }));
  const stored = data && data.bucket !== null ? data : null;
  return (
    <>
      <PageHead title="Storage">
        {mayChange.value && stored && (
          <button class="danger" onClick={() => setClearing(true)}>
            Use the server’s storage…
          </button>
        )}
        {mayChange.value && (
          <a class="button primary" href={linkHere({ edit: '1' })}>
            {stored ? 'Edit the bucket…' : 'Use an own bucket…'}
          </a>
        )}
      </PageHead>
      <Trouble error={error} onRetry={reload} />
      {data && !stored && (
        <Empty title="New files go to the server’s own storage">
          <p>With an own bucket (S3, R2, MinIO …) they go there, and older ones stay where they are.</p>
        </Empty>
      )}
      {stored && <Facts bucket={stored} />}
      <Commands cli={`bsvc byok show ${ofProject()}`} path={base} />
      {stored && mayChange.value && <Checks path={below(base, '/check')} />}
      {data && place.value.query.get('edit') && mayChange.value && (
        <BucketDrawer
          path={base}
          stored={stored}
          onClose={close}
          onSaved={() => {
            reload();
            close();
          }}
        />
      )}
      {isClearing && (
        <Confirm
          title="Use the server’s storage"
          text="New files go to the server’s own storage; those in the bucket stay there."
          action="Use the server’s storage"
          commands={{ cli: `bsvc byok bucket clear ${ofProject()}`, method: 'DELETE', path: base }}
          onClose={() => setClearing(false)}
          onConfirm={async () => {
            await call('DELETE', base);
            say('New files go to the server’s own storage');
            setClearing(false);
            reload();
          }}
        />
      )}
    </>
  );
}

function Facts({ bucket: { bucket, endpoint, region, accessKeyId, publicUrl, setAt } }: { bucket: OwnBucket }) {
  return (
    <dl class="pairs">
      <dt>Bucket</dt>
      <dd>{bucket}</dd>
      <dt>Endpoint</dt>
      <dd>{endpoint ?? 'Amazon S3'}</dd>
      <dt>Region</dt>
      <dd>{region}</dd>
      <dt>Access key</dt>
      <dd>
        <code>{accessKeyId}</code>
      </dd>
      <dt>Public address</dt>
      <dd>{publicUrl ?? 'none: files are read through the server'}</dd>
      <dt>Set</dt>
      <dd>{moment(setAt)}</dd>
    </dl>
  );
}

/** Tries what uploads need, when somebody asks. */
function Checks({ path }: { path: Address<'/api/projects/{projectId}/bucket/check'> }) {
  const [checks, setChecks] = useState<ApiSchemas['BucketCheck'][] | null>(null);
  const [busy, check, error] = useAction(async () => setChecks((await call('POST', path)).checks));
  return (
    <>
      <h2>Check</h2>
      <p class="row">
        <button disabled={busy} onClick={() => void check()}>
          {busy ? 'Checking…' : 'Check the bucket'}
        </button>
      </p>
      <Trouble error={error} />
      {checks && (
        <Table
          label="Checks"
          loading={false}
          rows={checks}
          keyOf={({ name }) => name}
          empty=""
          columns={[
            { name: 'Check', show: ({ name }) => name },
            {
              name: 'Result',
              show: ({ ok }) => <span class={ok ? 'tag good' : 'tag bad'}>{ok ? 'passed' : 'failed'}</span>,
            },
            { name: 'Detail', show: ({ detail }) => detail },
            { name: 'What helps', show: ({ hint }) => hint ?? '' },
          ]}
        />
      )}
      <Commands cli={`bsvc byok bucket check ${ofProject()}`} method="POST" path={path} />
    </>
  );
}

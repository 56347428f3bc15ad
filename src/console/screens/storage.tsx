import { useState } from 'preact/hooks';
import { call, prepare } from '../api.js';
import { below, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { ErrorNote, useAction } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { DrawerForm } from '../parts/drawer.js';
import { Field, PasswordField, Tick, useForm } from '../parts/form.js';
import { Empty, PageHead, Pairs } from '../parts/page-head.js';
import { Table } from '../parts/table.js';
import { goTo, linkHere, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';

type BucketPath = Address<'/api/projects/{projectId}/bucket'>;
/** A bucket of the project's own. */
type OwnBucket = Exclude<ApiSchemas['Bucket'], { bucket: null }>;

/** Where new files of a project go. */
export function Storage() {
  const base = below(projectPath(), '/bucket');
  const { data, error, reload } = useLoad(base);
  const [isClearing, setClearing] = useState(false);
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
      <ErrorNote error={error} onRetry={reload} />
      {data && !stored && (
        <Empty title="New files go to the server’s own storage">
          <p>With an own bucket (S3, R2, MinIO …) they go there, and older ones stay where they are.</p>
        </Empty>
      )}
      {stored && (
        <Pairs
          of={{
            Bucket: stored.bucket,
            Endpoint: stored.endpoint ?? 'Amazon S3',
            Region: stored.region,
            'Access key': <code>{stored.accessKeyId}</code>,
            'Public URL': stored.publicUrl ?? 'none: files are read through the server',
            Set: moment(stored.setAt),
          }}
        />
      )}
      <Commands of={[prepare('GET', base)]} />
      {stored && mayChange.value && <Checks path={below(base, '/check')} />}
      {data && place.value.query.get('edit') && mayChange.value && (
        <BucketDrawer path={base} stored={stored} onClose={() => goTo(linkHere({ edit: null }))} />
      )}
      {isClearing && (
        <Confirm
          title="Use the server’s storage"
          text="New files go to the server’s own storage; those in the bucket stay there."
          request={prepare('DELETE', base)}
          done="New files go to the server’s own storage"
          onClose={() => setClearing(false)}
        />
      )}
    </>
  );
}

/** The own bucket of a project: it is tried before it is stored, and its secret is given again each time. */
function BucketDrawer({ path, stored, onClose }: { path: BucketPath; stored: OwnBucket | null; onClose: () => void }) {
  const form = useForm({
    bucket: stored?.bucket ?? '',
    endpoint: stored?.endpoint ?? '',
    region: stored?.region ?? 'auto',
    accessKeyId: stored?.accessKeyId ?? '',
    secretAccessKey: '',
    publicUrl: stored?.publicUrl ?? '',
    forcePathStyle: stored?.forcePathStyle ?? false,
  });
  const { bucket, endpoint, region, accessKeyId, publicUrl, ...others } = form.values;
  const body = {
    ...others,
    bucket: bucket.trim(),
    endpoint: endpoint.trim() || null,
    region: region.trim(),
    accessKeyId: accessKeyId.trim(),
    publicUrl: publicUrl.trim() || null,
  };
  return (
    <DrawerForm
      title={stored ? 'Edit the bucket' : 'Use an own bucket'}
      action="Try it and save"
      requests={[prepare('PUT', path, { body })]}
      done="New files go to the bucket"
      isDirty={form.isDirty}
      mayGo={bucket !== '' && accessKeyId !== '' && others.secretAccessKey !== ''}
      onClose={onClose}
    >
      <Field label="Bucket" required {...form.at('bucket')} />
      <Field
        label="Endpoint"
        hint="Such as https://ACCOUNT.r2.cloudflarestorage.com. Leave empty for Amazon S3."
        {...form.at('endpoint')}
      />
      <Field label="Region" required {...form.at('region')} />
      <Field label="Access key id" required {...form.at('accessKeyId')} />
      <PasswordField label="Secret access key" isNew {...form.at('secretAccessKey')} />
      <Field
        label="Public address"
        hint="Public URL of the bucket. Leave empty to serve files through the server."
        {...form.at('publicUrl')}
      />
      <Tick label="Path-style URLs (MinIO)" {...form.at('forcePathStyle')} />
    </DrawerForm>
  );
}

/** Checks what uploads need, on request. */
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
      <ErrorNote error={error} />
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
      <Commands of={[prepare('POST', path)]} />
    </>
  );
}

import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import type { Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { say, useAction } from '../../parts/basics.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Field, PasswordField, Tick } from '../../parts/form.js';

/** A bucket of the project's own. */
export type OwnBucket = Exclude<ApiSchemas['Bucket'], { bucket: null }>;

/** The own bucket of a project: it is tried before it is stored, and its secret is given again each time. */
export function BucketDrawer({
  path,
  stored,
  onClose,
  onSaved,
}: {
  path: Address<'/api/projects/{projectId}/bucket'>;
  stored: OwnBucket | null;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [bucket, setBucket] = useState(stored?.bucket ?? '');
  const [endpoint, setEndpoint] = useState(stored?.endpoint ?? '');
  const [region, setRegion] = useState(stored?.region ?? 'auto');
  const [accessKeyId, setKey] = useState(stored?.accessKeyId ?? '');
  const [secretAccessKey, setSecret] = useState('');
  const [publicUrl, setPublic] = useState(stored?.publicUrl ?? '');
  const [forcePathStyle, setStyle] = useState(stored?.forcePathStyle ?? false);
  const body = {
    bucket: bucket.trim(),
    endpoint: endpoint.trim() || null,
    region: region.trim(),
    accessKeyId: accessKeyId.trim(),
    secretAccessKey,
    publicUrl: publicUrl.trim() || null,
    forcePathStyle,
  };
  const [busy, save, error] = useAction(async () => {
    await call('PUT', path, { body });
    say('New files go to the bucket');
    onSaved();
  });
  return (
    <DrawerForm
      title={stored ? 'Edit the bucket' : 'Use an own bucket'}
      action="Try it and save"
      isDirty={secretAccessKey !== '' || bucket !== (stored?.bucket ?? '')}
      mayGo={bucket !== '' && accessKeyId !== '' && secretAccessKey !== ''}
      busy={busy}
      error={error}
      commands={{ method: 'PUT', path, body: { ...body, secretAccessKey: '…' } }}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Field label="Bucket" required autocomplete="off" value={bucket} onText={setBucket} />
      <Field
        label="Endpoint"
        autocomplete="off"
        value={endpoint}
        hint="Such as https://ACCOUNT.r2.cloudflarestorage.com; empty is Amazon S3."
        onText={setEndpoint}
      />
      <Field label="Region" required autocomplete="off" value={region} onText={setRegion} />
      <Field label="Access key id" required autocomplete="off" value={accessKeyId} onText={setKey} />
      <PasswordField label="Secret access key" isNew value={secretAccessKey} onText={setSecret} />
      <Field
        label="Public address"
        autocomplete="off"
        value={publicUrl}
        hint="Where browsers read the files; empty reads them through the server."
        onText={setPublic}
      />
      <Tick label="The bucket stands in the path, as at MinIO" isOn={forcePathStyle} onTick={setStyle} />
    </DrawerForm>
  );
}

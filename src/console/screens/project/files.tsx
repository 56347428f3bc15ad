import { useState } from 'preact/hooks';
import { api, queryOf } from '../../api.js';
import { bytes, howMany, moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say, Trouble } from '../../parts/basics.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Filters, Pager } from '../../parts/filters.js';
import { PageHead } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { Usage } from '../../parts/usage.js';
import { place } from '../../routes.js';
import { mayChange } from '../../session.js';

interface StoredFile {
  path: string;
  name: string;
  contentType: string;
  size: number | null;
  provider: string;
  url: string | null;
  createdAt: string;
}

interface StorageUsage {
  files: number;
  bytes: number;
  limit: number | null;
  provider: 'internal' | 'external';
}

/** Counts the files, so only when somebody asks. */
function FilesUsage({ path }: { path: string }) {
  const [isAsked, setAsked] = useState(false);
  const { data, error, reload } = useLoad<StorageUsage>(isAsked ? path : null);
  return (
    <div class="row">
      {!data && (
        <button disabled={isAsked && !error} onClick={() => setAsked(true)}>
          Count what they use
        </button>
      )}
      {data && <Usage name={howMany(data.files, 'file')} used={data.bytes} limit={data.limit} />}
      {data?.provider === 'external' && <span class="muted">New ones go to the project’s own bucket.</span>}
      <Trouble error={error} onRetry={reload} />
    </div>
  );
}

export function Files() {
  const { parts, query } = place.value;
  const base = `/api/projects/${parts[1] ?? ''}/files`;
  const name = query.get('name') ?? '';
  const path = `${base}${queryOf({ name, before: query.get('before') })}`;
  const list = useLoad<{ items: StoredFile[]; next: string | null }>(path);
  const { data, reload } = list;
  const [deleting, setDeleting] = useState<StoredFile | null>(null);
  return (
    <>
      <PageHead title="Files" />
      <Filters fields={[{ name: 'name', label: 'Name holds' }]} />
      <List
        label="Files"
        of={list}
        keyOf={(file) => file.path}
        empty="No files. Apps upload them."
        columns={[
          {
            name: 'Name',
            show: (file) =>
              file.url !== null && /^https?:/.test(file.url) ? (
                <a class="opens" href={file.url} target="_blank" rel="noopener noreferrer">
                  {file.name}
                </a>
              ) : (
                file.name
              ),
          },
          { name: 'Type', show: ({ contentType }) => contentType },
          { name: 'Size', isNumber: true, show: ({ size }) => bytes(size) },
          { name: 'Where', show: ({ provider }) => provider },
          { name: 'Created', show: ({ createdAt }) => moment(createdAt) },
          {
            name: 'Delete',
            show: (file) =>
              mayChange.value ? (
                <button class="small danger" aria-label={`Delete ${file.name}`} onClick={() => setDeleting(file)}>
                  Delete…
                </button>
              ) : null,
          },
        ]}
      />
      <Pager before={data?.next ?? null} />
      <FilesUsage path={`${base}/usage`} />
      <Commands cli={`bsvc file list ${ofProject()}${name && ` --name ${quote(name)}`}`} path={path} />
      {deleting && (
        <Confirm
          title="Delete the file"
          text="For good, with its bytes."
          name={deleting.name}
          commands={{
            cli: `bsvc file delete ${quote(deleting.path)} ${ofProject()}`,
            method: 'DELETE',
            path: base,
            body: { path: deleting.path },
          }}
          action="Delete the file"
          onClose={() => setDeleting(null)}
          onConfirm={async () => {
            await api('DELETE', base, { path: deleting.path });
            say('The file is deleted');
            setDeleting(null);
            reload();
          }}
        />
      )}
    </>
  );
}

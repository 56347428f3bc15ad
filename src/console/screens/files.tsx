import { useState } from 'preact/hooks';
import { api, queryOf } from '../api.js';
import { bytes, moment } from '../format.js';
import { useLoad } from '../load.js';
import { Commands, ConfirmByName, quote, say, Trouble } from '../parts/basics.js';
import { Filters, Pager } from '../parts/filters.js';
import { Table } from '../parts/table.js';
import { place } from '../routes.js';
import { mayChange, project } from '../session.js';

interface StoredFile {
  path: string;
  name: string;
  contentType: string;
  size: number | null;
  provider: string;
  url: string | null;
  createdAt: string;
}

export function Files() {
  const { parts, query } = place.value;
  const base = `/api/projects/${parts[1] ?? ''}/files`;
  const name = query.get('name') ?? '';
  const path = `${base}${queryOf({ name, before: query.get('before') })}`;
  const { data, error, loading, reload } = useLoad<{ items: StoredFile[]; next: string | null }>(path);
  const [deleting, setDeleting] = useState<StoredFile | null>(null);
  const named = quote(project.value?.name ?? '');
  return (
    <>
      <h1>Files</h1>
      <Filters fields={[{ name: 'name', label: 'Name holds' }]} />
      <Trouble error={error} onRetry={reload} />
      <Table
        label="Files"
        loading={loading}
        rows={data?.items ?? null}
        keyOf={(file) => file.path}
        empty="No files."
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
          { name: 'Since', show: ({ createdAt }) => moment(createdAt) },
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
      <Commands cli={`bsvc file list --project ${named}${name && ` --name ${quote(name)}`}`} path={path} />
      {deleting && (
        <ConfirmByName
          title="Delete the file"
          text={`For good, with its bytes: bsvc file delete ${deleting.path} --project ${named}`}
          name={deleting.name}
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

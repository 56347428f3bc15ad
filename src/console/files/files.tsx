import { useRef, useState } from 'preact/hooks';
import { prepare } from '../api.js';
import { below, withQuery, type Address } from '../api-paths.js';
import { bytes, howMany, moment } from '../format.js';
import { useLoad } from '../load.js';
import { ErrorNote } from '../parts/basics.js';
import { CrudScreen } from '../parts/crud-screen.js';
import { Icon } from '../parts/icon.js';
import { Empty, Usage } from '../parts/page-head.js';
import { linkHere, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';
import { FileDrawer, isImage, previewAddress, type StoredFile } from './stored-file.js';
import { Uploads, useUploads } from './uploads.js';

/** Larger images are not loaded for a line of a table. */
const MAX_THUMBNAIL = 1024 * 1024;

/** Counts all files, so only on request. */
function FilesUsage({ path }: { path: Address<'/api/projects/{projectId}/files/usage'> }) {
  const [isAsked, setAsked] = useState(false);
  const { data, error, reload } = useLoad(isAsked ? path : null);
  return (
    <div class="row">
      {!data && (
        <button disabled={isAsked && !error} onClick={() => setAsked(true)}>
          Count what they use
        </button>
      )}
      {data && <Usage name={howMany(data.files, 'file')} used={data.bytes} limit={data.limit} />}
      {data?.provider === 'external' && <span class="muted">New ones go to the project’s own bucket.</span>}
      <ErrorNote error={error} onRetry={reload} />
    </div>
  );
}

export function Files() {
  const { query } = place.value;
  const base = below(projectPath(), '/files');
  const name = query.get('name') ?? '';
  const list = useLoad(withQuery(base, { name, before: query.get('before') }));
  const uploads = useUploads(base, list.reload);
  return (
    <>
      <CrudScreen
        title="Files"
        actions={<UploadButton onFiles={uploads.add} />}
        filters={[{ name: 'name', label: 'Name holds' }]}
        list={list}
        before={list.data?.next ?? null}
        keyOf={(file) => file.path}
        empty={<NoFiles isFiltered={name !== ''} />}
        columns={[
          {
            name: 'Name',
            show: (file) => (
              <span class="file-name">
                <Thumbnail file={file} />
                <a class="opens" href={linkHere({ open: file.path })} dir="auto">
                  {file.name}
                </a>
              </span>
            ),
          },
          { name: 'Type', show: ({ contentType }) => contentType },
          { name: 'Size', isNumber: true, show: ({ size }) => bytes(size) },
          { name: 'Where', show: ({ provider }) => provider },
          { name: 'Created', show: ({ createdAt }) => moment(createdAt) },
        ]}
        view={(file, close, ask) => <FileDrawer file={file} onDelete={ask} onClose={close} />}
        remove={({ path, name: called }) => ({
          title: 'Delete the file',
          label: `Delete ${called}`,
          text: 'This permanently deletes the file.',
          name: called,
          request: prepare('DELETE', base, { body: { path } }),
          done: 'The file is deleted',
        })}
      >
        {mayChange.value && <Uploads of={uploads} />}
      </CrudScreen>
      <FilesUsage path={below(base, '/usage')} />
    </>
  );
}

function NoFiles({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No files match your search" />;
  return (
    <Empty title="No files yet">
      <p>Apps upload them{mayChange.value ? ', and so can you: press Upload…, or drop files on this page.' : '.'}</p>
    </Empty>
  );
}

/** The image itself where it is small; else what stands for a file. */
function Thumbnail({ file }: { file: StoredFile }) {
  const url = previewAddress(file.url);
  if (url === null || !isImage(file) || (file.size ?? 0) > MAX_THUMBNAIL) return <Icon name="files" />;
  return <img src={url} alt="" width={20} height={20} loading="lazy" />;
}

function UploadButton({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button class="primary" onClick={() => input.current?.click()}>
        Upload…
      </button>
      <input
        ref={input}
        class="hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Files to upload"
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // The same file may be chosen again.
          currentTarget.value = '';
        }}
      />
    </>
  );
}

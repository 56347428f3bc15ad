import { useRef, useState, useEffect } from 'preact/hooks';
import { prepare, call, refusalOf } from '../api.js';
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
          { name: 'Size', kind: 'number', show: ({ size }) => bytes(size) },
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

/** A file on its way to the server. */
interface Upload {
  id: number;
  name: string;
  size: number;
  state: 'waiting' | 'sending' | 'stored' | 'refused';
  /** Why it was refused. */
  problem: string | null;
}

interface UploadList {
  uploads: readonly Upload[];
  add: (files: readonly File[]) => void;
  clear: () => void;
}

/** Uploads that run one after the other while the page is open, each independently. */
function useUploads(base: Address<'/api/projects/{projectId}/files'>, onStored: () => void): UploadList {
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
  const waiting = useRef<{ id: number; file: File }[]>([]);
  const isBusy = useRef(false);
  const last = useRef(0);
  const stored = useRef(onStored);
  stored.current = onStored;
  const settle = (id: number, change: Partial<Upload>): void =>
    setUploads((list) => list.map((each) => (each.id === id ? { ...each, ...change } : each)));
  const sendAll = async (): Promise<void> => {
    if (isBusy.current) return;
    isBusy.current = true;
    for (let next = waiting.current.shift(); next; next = waiting.current.shift()) {
      settle(next.id, { state: 'sending' });
      const form = new FormData();
      form.set('file', next.file);
      try {
        await call('POST', base, { form });
        settle(next.id, { state: 'stored' });
        stored.current();
      } catch (error) {
        settle(next.id, { state: 'refused', problem: refusalOf(error).message });
      }
    }
    isBusy.current = false;
  };
  return {
    uploads,
    add(files) {
      const added = files.map((file) => ({ id: ++last.current, file }));
      waiting.current.push(...added);
      const shown = added.map(
        ({ id, file: { name, size } }) => ({ id, name, size, state: 'waiting', problem: null }) as const,
      );
      setUploads((list) => [...list, ...shown]);
      void sendAll();
    },
    clear: () => setUploads((list) => list.filter(({ state }) => state === 'waiting' || state === 'sending')),
  };
}

const STATES = { waiting: 'waits', sending: 'is sent…', stored: 'stored', refused: 'refused' };

/** What was uploaded from this page; files that are dropped on it come along. */
function Uploads({ of: { uploads, add, clear } }: { of: UploadList }) {
  const isOver = useDrop(add);
  if (uploads.length === 0 && !isOver) return null;
  const isDone = uploads.every(({ state }) => state === 'stored' || state === 'refused');
  return (
    <section class={isOver ? 'uploads over' : 'uploads'} aria-label="Uploads" aria-live="polite">
      {isOver && <p>Drop the files to upload them.</p>}
      <ul>
        {uploads.map(({ id, name, size, state, problem }) => (
          <li key={id}>
            <span dir="auto">{name}</span> <span class="muted">{bytes(size)}</span>{' '}
            <span class={`tag ${state === 'refused' ? 'bad' : state === 'stored' ? 'good' : ''}`}>{STATES[state]}</span>
            {problem !== null && <span class="bad"> {problem}</span>}
          </li>
        ))}
      </ul>
      {isDone && uploads.length > 0 && (
        <button class="small" onClick={clear}>
          Clear this list
        </button>
      )}
    </section>
  );
}

/** Takes files that are dropped anywhere on the page: the browser would leave the page for them. */
function useDrop(add: (files: readonly File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const taken = useRef(add);
  taken.current = add;
  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes('Files') === true;
    const over = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    addEventListener('dragover', over, { signal });
    addEventListener('dragleave', (event) => event.relatedTarget === null && setOver(false), { signal });
    addEventListener(
      'drop',
      (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        taken.current([...(event.dataTransfer?.files ?? [])]);
      },
      { signal },
    );
    return () => ending.abort();
  }, []);
  return isOver;
}

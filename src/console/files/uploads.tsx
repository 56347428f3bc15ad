import { useEffect, useRef, useState } from 'preact/hooks';
import { call, refusalOf } from '../api.js';
import type { Address } from '../api-paths.js';
import { bytes } from '../format.js';

/** A file on its way to the server. */
interface Upload {
  id: number;
  name: string;
  size: number;
  state: 'waiting' | 'sending' | 'stored' | 'refused';
  /** Why it was refused. */
  problem: string | null;
}

export interface UploadList {
  uploads: readonly Upload[];
  add: (files: readonly File[]) => void;
  clear: () => void;
}

/** Uploads that run one after the other while the page is open, each independently. */
export function useUploads(base: Address<'/api/projects/{projectId}/files'>, onStored: () => void): UploadList {
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
export function Uploads({ of: { uploads, add, clear } }: { of: UploadList }) {
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

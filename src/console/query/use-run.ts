import { useEffect, useState } from 'preact/hooks';
import { api, refusalOf, type Refusal } from '../api.js';

export type QueryKind = 'list' | 'pipeline';

/** How a query was read. */
export interface Explained {
  indexes: string[];
  examined: number;
  returned: number;
  plan: unknown;
}

export interface Answer {
  isBusy: boolean;
  rows: Record<string, unknown>[] | null;
  /** Documents that match on all pages, where a list says it. */
  total: number | null;
  explained: Explained | null;
  error: Refusal | null;
  ms: number;
}

const NOTHING: Answer = { isBusy: false, rows: null, total: null, explained: null, error: null, ms: 0 };

/** Runs what the address asks for, again with each turn; a newer one ends the one before. */
export function useRun({
  kind,
  documents,
  text,
  turn,
  isExplained,
}: {
  kind: QueryKind;
  documents: string;
  text: string | null;
  turn: number;
  isExplained: boolean;
}): Answer {
  const [answer, setAnswer] = useState(NOTHING);
  useEffect(() => {
    if (text === null) {
      setAnswer(NOTHING);
      return undefined;
    }
    const ending = new AbortController();
    setAnswer((last) => ({ ...last, isBusy: true, error: null }));
    const started = performance.now();
    const ask = isExplained ? explain : kind === 'list' ? readList : readPipeline;
    ask(documents, kind, text, ending.signal).then(
      (found) =>
        !ending.signal.aborted && setAnswer({ ...NOTHING, ...found, ms: Math.round(performance.now() - started) }),
      (error: unknown) => !ending.signal.aborted && setAnswer({ ...NOTHING, error: refusalOf(error) }),
    );
    return () => ending.abort();
  }, [documents, kind, text, turn]);
  return answer;
}

type Found = Partial<Answer>;

async function readList(documents: string, _kind: QueryKind, text: string, signal: AbortSignal): Promise<Found> {
  const query = queryIn(text);
  const data = await api<{ items?: Answer['rows']; total?: number; count?: number }>(
    'GET',
    `${documents}${query === '' ? '' : `?${query}`}`,
    undefined,
    { signal },
  );
  if (data.count !== undefined) return { rows: [{ count: data.count }] };
  return { rows: data.items ?? [], total: data.total ?? null };
}

async function readPipeline(documents: string, _kind: QueryKind, text: string, signal: AbortSignal): Promise<Found> {
  const body = { pipeline: JSON.parse(text) as unknown };
  return { rows: await api<Record<string, unknown>[]>('POST', `${documents}/aggregate`, body, { signal }) };
}

async function explain(documents: string, kind: QueryKind, text: string, signal: AbortSignal): Promise<Found> {
  const body = kind === 'list' ? { query: queryIn(text) } : { pipeline: JSON.parse(text) as unknown };
  return { explained: await api<Explained>('POST', `${documents}/explain`, body, { signal }) };
}

/** The query of what is typed or pasted: a whole address too, on one line or several. */
export function queryIn(text: string): string {
  const line = text
    .split('\n')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join('&');
  return line.replace(/^[^=]*\?/, '').replace(/&{2,}/g, '&');
}

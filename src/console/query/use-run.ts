import { useEffect, useState } from 'preact/hooks';
import { type Refusal, call, refusalOf } from '../api.js';
import { below, withQuery } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { documentsIn, type DocumentsPath } from '../collection.js';

export type QueryKind = 'list' | 'pipeline';

export interface Answer {
  isBusy: boolean;
  rows: Record<string, unknown>[] | null;
  /** Documents that match on all pages, where a list says it. */
  total: number | null;
  /** How the query was read. */
  explained: ApiSchemas['ExplainedRead'] | null;
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
  documents: DocumentsPath;
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

async function readList(documents: DocumentsPath, _kind: QueryKind, text: string, signal: AbortSignal): Promise<Found> {
  const data = await call('GET', withQuery(documents, new URLSearchParams(queryIn(text))), { signal });
  return 'count' in data ? { rows: [data] } : { rows: documentsIn(data), total: data.total };
}

async function readPipeline(
  documents: DocumentsPath,
  _kind: QueryKind,
  text: string,
  signal: AbortSignal,
): Promise<Found> {
  const body = { pipeline: JSON.parse(text) as Record<string, unknown>[] };
  return { rows: await call('POST', below(documents, '/aggregate'), { body, signal }) };
}

async function explain(documents: DocumentsPath, kind: QueryKind, text: string, signal: AbortSignal): Promise<Found> {
  const body = kind === 'list' ? { query: queryIn(text) } : { pipeline: JSON.parse(text) as unknown };
  return { explained: await call('POST', below(documents, '/explain'), { body, signal }) };
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

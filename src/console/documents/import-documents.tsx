import { useState } from 'preact/hooks';
import { api } from '../api.js';
import { howMany, number } from '../format.js';
import { Dialog, say, Trouble, useAction } from '../parts/basics.js';
import { Commands, ofProject, quote } from '../parts/commands.js';

interface Outcome {
  inserted: number;
  rejected: { index: number; message: string }[];
}

interface Chosen {
  name: string;
  documents: unknown[];
}

/** Limit of one request. */
const MAX_AT_ONCE = 1000;
const MAX_CHARACTERS = 500_000;
/** Larger files are for the command line, which reads them piece by piece. */
const MAX_BYTES = 20 * 1024 * 1024;
const SHOWN_REFUSALS = 20;

/** Stores the documents of a file, after a look at which of them fit. */
export function ImportDialog({
  base,
  collection,
  onClose,
  onChange,
}: {
  base: string;
  collection: string;
  onClose: () => void;
  onChange: () => void;
}) {
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [looked, setLooked] = useState<Outcome | null>(null);
  const choose = async (file: File | undefined): Promise<void> => {
    setLooked(null);
    setChosen(null);
    setProblem(null);
    if (!file) return;
    try {
      if (file.size > MAX_BYTES) throw new Error('The file is larger than 20 MB: import it on the command line.');
      setChosen({ name: file.name, documents: readDocuments(await file.text()) });
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  const send = async (isDryRun: boolean): Promise<Outcome> => {
    const sum: Outcome = { inserted: 0, rejected: [] };
    let before = 0;
    for (const documents of inParts(chosen?.documents ?? [])) {
      const path = `${base}/import${isDryRun ? '?dryRun=true' : ''}`;
      const { inserted, rejected } = await api<Outcome>('POST', path, { documents });
      sum.inserted += inserted;
      for (const each of rejected) sum.rejected.push({ ...each, index: before + each.index });
      before += documents.length;
    }
    return sum;
  };
  const [looking, look, lookRefused] = useAction(async () => setLooked(await send(true)));
  const [busy, store, refused] = useAction(async () => {
    const { inserted, rejected } = await send(false);
    const left = rejected.length === 0 ? '' : `, ${number(rejected.length)} refused: ${rejected[0]!.message}`;
    say(`${howMany(inserted, 'document')} stored${left}`, { isBad: rejected.length > 0 });
    onChange();
    onClose();
  });
  return (
    <Dialog title={`Import into ${collection}`} onClose={onClose}>
      <p>
        <label>
          File: one JSON object a line, or a JSON array{' '}
          <input
            type="file"
            accept=".json,.ndjson,.jsonl"
            onChange={(event) => void choose(event.currentTarget.files?.[0])}
          />
        </label>
      </p>
      {problem !== null && <p class="bad">{problem}</p>}
      <Trouble error={lookRefused ?? refused} />
      {looked && (
        <section role="status">
          <p>
            {number(looked.inserted)} fit, {number(looked.rejected.length)} would be refused. Nothing is stored yet.
          </p>
          <ul>
            {looked.rejected.slice(0, SHOWN_REFUSALS).map(({ index, message }) => (
              <li key={index}>
                Document {index + 1}: {message}
              </li>
            ))}
          </ul>
        </section>
      )}
      {chosen && (
        <p class="row">
          <button disabled={looking || busy} onClick={() => void look()}>
            Look which of {number(chosen.documents.length)} fit
          </button>
          {looked && looked.inserted > 0 && (
            <button class="primary" disabled={looking || busy} onClick={() => void store()}>
              Store {howMany(looked.inserted, 'document')}
            </button>
          )}
        </p>
      )}
      <Commands
        cli={`bsvc data import ${collection} ${quote(chosen?.name ?? 'documents.ndjson')} --dry-run ${ofProject()}`}
        method="POST"
        path={`${base}/import?dryRun=true`}
        body={{ documents: chosen?.documents.slice(0, 2) ?? [{}] }}
      />
    </Dialog>
  );
}

function readDocuments(text: string): unknown[] {
  const trimmed = text.trim();
  if (trimmed === '') throw new Error('The file is empty.');
  if (trimmed.startsWith('[')) return JSON.parse(trimmed) as unknown[];
  return trimmed.split('\n').map((line, at) => {
    try {
      return JSON.parse(line) as unknown;
    } catch (error) {
      throw new Error(`Line ${at + 1} is not JSON: ${(error as Error).message}`);
    }
  });
}

function* inParts(documents: readonly unknown[]): Generator<unknown[]> {
  let part: unknown[] = [];
  let characters = 0;
  for (const document of documents) {
    const { length } = JSON.stringify(document);
    if (part.length === MAX_AT_ONCE || (part.length > 0 && characters + length > MAX_CHARACTERS)) {
      yield part;
      [part, characters] = [[], 0];
    }
    part.push(document);
    characters += length;
  }
  if (part.length > 0) yield part;
}

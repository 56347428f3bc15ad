import { useState } from 'preact/hooks';
import { below } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { call, prepare } from '../../api.js';
import type { Collection, DocumentsPath, CollectionField } from '../../collection.js';
import { howMany, number, cell } from '../../format.js';
import { say, ErrorNote, useAction } from '../../parts/basics.js';
import { Commands } from '../../parts/commands.js';
import { Drawer } from '../../parts/drawer.js';
import { Table } from '../../parts/table.js';
import type { Mapping, ReadFile } from './read-file.js';

type Outcome = Required<Pick<ApiSchemas['ImportOutcome'], 'inserted' | 'rejected' | 'notes'>>;

interface Chosen extends ReadFile {
  name: string;
}

/** Limit of one request. */
const MAX_AT_ONCE = 1000;
const MAX_CHARACTERS = 500_000;
/** Larger files are for the command line, which reads them piece by piece. */
const MAX_BYTES = 20 * 1024 * 1024;

/** Stores the documents of a file, after a look at which of them fit. */
export function ImportDrawer({
  base,
  collection,
  onClose,
  onChange,
}: {
  base: DocumentsPath;
  collection: Collection;
  onClose: () => void;
  onChange: () => void;
}) {
  const [looked, setLooked] = useState<Outcome | null>(null);
  const { fields, name } = collection;
  const { chosen, mapping, problem, choose, map } = useFile(collection, () => setLooked(null));
  const [looking, look, lookRefused] = useAction(async () => {
    setLooked(await send(base, chosen!.documents(mapping, fields), true));
  });
  const [busy, store, refused] = useAction(async () => {
    const { inserted, rejected } = await send(base, chosen!.documents(mapping, fields), false);
    const left = rejected.length === 0 ? '' : `, ${number(rejected.length)} refused: ${rejected[0]!.message}`;
    say(`${howMany(inserted, 'document')} stored${left}`, { isBad: rejected.length > 0 });
    onChange();
    onClose();
  });
  return (
    <Drawer title={`Import into ${name}`} onClose={onClose}>
      <label class="file">
        File: CSV, a JSON array, or one JSON object per line
        <input
          type="file"
          accept=".csv,.tsv,.json,.ndjson,.jsonl"
          onChange={(event) => void choose(event.currentTarget.files?.[0])}
        />
      </label>
      {problem !== null && <p class="bad">{problem}</p>}
      {chosen && <MappingTable file={chosen} mapping={mapping} fields={fields} onMapping={map} />}
      <ErrorNote error={lookRefused ?? refused} />
      {looked && <Looked {...looked} />}
      <Commands
        of={() => [
          prepare('POST', below(base, '/import'), {
            query: { dryRun: true },
            body: { documents: chosen ? chosen.documents(mapping, fields, 2) : [{}] },
          }),
        ]}
      />
      {chosen && (
        <div class="foot">
          <button disabled={looking || busy} onClick={() => void look()}>
            Preview import of {number(chosen.count)}
          </button>
          {looked && looked.inserted > 0 && (
            <button class="primary end" disabled={looking || busy} onClick={() => void store()}>
              Store {howMany(looked.inserted, 'document')}
            </button>
          )}
        </div>
      )}
    </Drawer>
  );
}

/** The file that was chosen, taken apart, and where its columns go. */
function useFile({ name, fields, mode }: Collection, onChange: () => void) {
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [mapping, setMapping] = useState<Mapping>(new Map());
  const [problem, setProblem] = useState<string | null>(null);
  return {
    chosen,
    mapping,
    problem,
    map: (next: Mapping): void => {
      setMapping(next);
      onChange();
    },
    choose: async (file: File | undefined): Promise<void> => {
      onChange();
      setChosen(null);
      setProblem(null);
      if (!file) return;
      try {
        if (file.size > MAX_BYTES) throw new Error('The file is larger than 20 MB: import it on the command line.');
        const { guessMapping, readFile } = await import('./read-file.js');
        const read = await readFile(file, { name, fields: new Set(fields.map((field) => field.name)) });
        setChosen({ name: file.name, ...read });
        setMapping(guessMapping(read, fields, mode === 'flexible'));
      } catch (error) {
        setProblem((error as Error).message);
      }
    },
  };
}

const SHOWN_ERRORS = 20;

function Looked({ inserted, rejected, notes }: Outcome) {
  return (
    <section role="status">
      <p>
        {number(inserted)} fit, {number(rejected.length)} would be refused. Nothing is stored yet.
      </p>
      <ul>
        {rejected.slice(0, SHOWN_ERRORS).map(({ index, message }) => (
          <li key={index}>
            Document {index + 1}: {message}
          </li>
        ))}
        {notes.map(({ field, message, count }) => (
          <li key={`${field} ${message}`}>
            {field}: {message} ({howMany(count, 'document')})
          </li>
        ))}
      </ul>
    </section>
  );
}

async function send(base: DocumentsPath, documents: readonly object[], isDryRun: boolean): Promise<Outcome> {
  const sum: Outcome = { inserted: 0, rejected: [], notes: [] };
  let before = 0;
  for (const part of inParts(documents)) {
    const {
      inserted,
      rejected,
      notes = [],
    } = await call('POST', below(base, '/import'), {
      query: { dryRun: isDryRun || null },
      body: { documents: part },
    });
    sum.inserted += inserted;
    for (const each of rejected) sum.rejected.push({ ...each, index: before + each.index });
    for (const note of notes) {
      const there = sum.notes.find(({ field, message }) => field === note.field && message === note.message);
      if (there) there.count += note.count;
      else sum.notes.push({ ...note, index: before + note.index });
    }
    before += part.length;
  }
  return sum;
}

function* inParts(documents: readonly object[]): Generator<object[]> {
  let part: object[] = [];
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

/** Where each column of a file goes, with what stands in its first row. */
function MappingTable({
  file,
  mapping,
  fields,
  onMapping,
}: {
  file: ReadFile;
  mapping: Mapping;
  fields: readonly CollectionField[];
  onMapping: (next: Mapping) => void;
}) {
  return (
    <Table
      label="Columns of the file"
      loading={false}
      rows={file.columns}
      keyOf={(column) => column}
      empty="No columns."
      columns={[
        { name: 'Column', kind: 'head', show: (column) => column },
        { name: 'First row', show: (column) => <span dir="auto">{cell(file.sample(column), 60)}</span> },
        {
          name: 'Field',
          show: (column) => {
            const chosen = mapping.get(column) ?? null;
            const names = new Set([...fields.map(({ name }) => name), ...(chosen === null ? [] : [chosen]), column]);
            return (
              <select
                aria-label={`Field for ${column}`}
                value={chosen ?? ''}
                onChange={({ currentTarget: { value } }) =>
                  onMapping(new Map(mapping).set(column, value === '' ? null : value))
                }
              >
                <option value="">Leave it out</option>
                {[...names].map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            );
          },
        },
      ]}
    />
  );
}

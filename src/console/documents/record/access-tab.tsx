import { useState } from 'preact/hooks';
import { below, withQuery } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { useLoad } from '../../load.js';
import { ErrorNote } from '../../parts/basics.js';
import { Field, Form } from '../../parts/form.js';
import { played, projectPath } from '../../session.js';
import type { RecordView } from './use-record.js';

const ANYONE = 'anyone';

/** Who may do what with the document: each rule, evaluated for a user or an anonymous caller. */
export function AccessTab({ collection, record }: RecordView) {
  // When viewing as a user, explain first why that user can read the document.
  const first = played.value ?? ANYONE;
  const [typed, setTyped] = useState(first === ANYONE ? '' : first);
  const [as, setAs] = useState(first);
  const path = below(projectPath(), '/rules/{collection}/explain', { collection: collection.name });
  const { data, error, reload } = useLoad(withQuery(path, { as, id: record.stored?._id }));
  return (
    <>
      <Form class="row" onSubmit={() => setAs(typed.trim() || ANYONE)}>
        <Field label="User: address or id, empty for anyone" value={typed} onChange={setTyped} autocomplete="off" />
        <button>Look as this user</button>
      </Form>
      <ErrorNote error={error} onRetry={reload} />
      {data && (
        <div class="scroll" role="region" aria-label="Access" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">May</th>
                <th scope="col">{as === ANYONE ? 'Anyone' : as}</th>
                <th scope="col">Rule</th>
              </tr>
            </thead>
            <tbody>
              {data.rules.map(({ rule, text, admits, alternatives }) => (
                <tr key={rule}>
                  <th scope="row">{rule}</th>
                  <td>
                    <span class={`tag ${TONES[admits]}`}>{admits}</span>
                  </td>
                  <td class="wrapped">
                    <code>{text}</code>
                    {reasons(alternatives).map((reason) => (
                      <span key={reason} class="hint">
                        {reason}
                      </span>
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data?.document && data.document.leftOut.length > 0 && <p>Fields left out: {data.document.leftOut.join(', ')}</p>}
      <p class="muted">A secret key and operators are not asked for rules.</p>
    </>
  );
}

const TONES = { yes: 'good', no: 'bad', depends: 'warn' } as const;

/** The conditions that do not hold, or that depend on the document. */
const reasons = (alternatives: readonly ApiSchemas['ExplainedAlternative'][]): string[] =>
  alternatives.flatMap(({ conditions }) =>
    conditions.filter(({ admits }) => admits !== 'yes').map(({ text, admits }) => `${admits}: ${text}`),
  );

import { useState } from 'preact/hooks';
import { pathTo, withQuery } from '../api-paths.js';
import { useLoad } from '../load.js';
import { Trouble } from '../parts/basics.js';
import { Field, Form } from '../parts/form.js';

const ANYONE = 'anyone';
const TONES = { yes: 'good', no: 'bad', depends: 'warn' } as const;

/** Who may do what in a collection: a row for each user who was asked about. */
export function AccessMatrix({ id, collection }: { id: string; collection: string }) {
  const [who, setWho] = useState<readonly string[]>([ANYONE]);
  const [typed, setTyped] = useState('');
  const add = (): void => {
    const user = typed.trim();
    if (user !== '' && !who.includes(user)) setWho([...who, user]);
    setTyped('');
  };
  return (
    <section aria-label="Who may do what">
      <h3>Who may do what</h3>
      <div class="scroll" role="region" aria-label="Who may do what, as a table" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {['Who', 'read', 'create', 'update', 'delete', 'Memberships'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {who.map((user) => (
              <MatrixRow key={user} id={id} collection={collection} user={user} />
            ))}
          </tbody>
        </table>
      </div>
      <Form class="row" onSubmit={add}>
        <Field label="Another user: address or id" value={typed} onChange={setTyped} autocomplete="off" />
        <button>Show what this user may do</button>
      </Form>
      <p class="muted">“depends”: on the document. The tab “Access” of a document says it for that one.</p>
    </section>
  );
}

function MatrixRow({ id, collection, user }: { id: string; collection: string; user: string }) {
  const path = pathTo('/api/projects/{projectId}/rules/{collection}/explain', { projectId: id, collection });
  const { data, error, reload } = useLoad(withQuery(path, { as: user }));
  const sets = new Map(data?.rules.flatMap((rule) => rule.sets.map(({ text, values }) => [text, values] as const)));
  return (
    <tr>
      <th scope="row">{user === ANYONE ? 'anyone, not signed in' : user}</th>
      {error && (
        <td colSpan={5}>
          <Trouble error={error} onRetry={reload} />
        </td>
      )}
      {!error &&
        ['read', 'create', 'update', 'delete'].map((rule) => {
          const admits = data?.rules.find((each) => each.rule === rule)?.admits;
          return <td key={rule}>{admits && <span class={`tag ${TONES[admits]}`}>{admits}</span>}</td>;
        })}
      {!error && <td class="wrapped">{[...sets].map(([text, values]) => `${text}: ${values}`).join(' · ')}</td>}
    </tr>
  );
}

import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/form.js';
import { PullDown } from '../parts/pull-down.js';
import { goTo, linkHere } from '../routes.js';
import { played } from '../session.js';

/** Says as whom a list is shown, and leads back. */
export function PlayedAs() {
  const as = played.value;
  if (as === null) return null;
  return (
    <p class="trouble" role="status">
      You see this list as <b>{as === 'anyone' ? 'an anonymous caller' : as}</b> with a publishable key does. Nothing
      can be changed here meanwhile; a document that you open is shown whole, and its tab “Access” says why this user
      may read it. <a href={linkHere({ as: null, cursor: null })}>See all again</a>
    </p>
  );
}

/** Asks as whom the list is to be shown. */
export function PlayAs() {
  const [typed, setTyped] = useState('');
  const play = (): void => goTo(linkHere({ as: typed.trim() || 'anyone', cursor: null, trash: null, open: null }));
  return (
    <PullDown label="View as…">
      <Form onSubmit={play}>
        <Field label="Email or id; empty for an anonymous caller" value={typed} onChange={setTyped} />
        <button class="small">See the list as this user</button>
      </Form>
    </PullDown>
  );
}

/** @jsxImportSource . */
import type { ComponentType } from 'preact';
import { kit } from './given.js';
import type { Kit } from './kit.js';
import { Live } from './live.js';
import { LONG, nothing, NOTHING, refuse, REQUESTS, START, WRITTEN } from './samples.js';
import { FixedFields, FormFields, MistakenFields } from './show-fields.js';
import { Overlays } from './show-overlays.js';
import { Tables } from './show-tables.js';

/** The page, of parts that are the console's own. */
export function makePage(given: Kit): ComponentType {
  Object.assign(kit, given);
  return Page;
}

function Group({ title, Shown }: { title: string; Shown: ComponentType<{ theme: string }> }) {
  return (
    <section>
      <h2>{title}</h2>
      <div class="themes">
        {['light', 'dark'].map((theme) => (
          <div key={theme} class={`theme ${theme}`}>
            <Shown theme={theme} />
          </div>
        ))}
      </div>
    </section>
  );
}

function Buttons() {
  return (
    <>
      <p class="row">
        <button class="primary">Primary</button>
        <button>Plain</button>
        <button class="danger">Dangerous</button>
        <button class="quiet">Quiet</button>
        <a class="button" href={kit.linkHere({})}>
          <kit.Icon name="plus" />A link
        </a>
      </p>
      <p class="row">
        <button class="primary" disabled>
          Primary, off
        </button>
        <button disabled>Plain, off</button>
        <button class="danger" disabled>
          Dangerous, off
        </button>
      </p>
      <p class="row centred">
        <button class="small">Small</button>
        <button class="small quiet">Small and quiet</button>
        <button class="quiet icon" aria-label="Icon alone">
          <kit.Icon name="close" />
        </button>
        <kit.Copy text="copied" what="Text" />
        <kbd>Ctrl K</kbd>
      </p>
      <div class="row">
        <kit.PullDown label="Pulled down">
          <p>A sheet below its button.</p>
        </kit.PullDown>
      </div>
    </>
  );
}

function Icons() {
  return (
    <p class="row">
      {kit.ICONS.map((name) => (
        <span key={name} title={name}>
          <kit.Icon name={name} />
        </span>
      ))}
    </p>
  );
}

function Texts() {
  return (
    <>
      <p>
        Text, <a href={kit.linkHere({})}>a link</a>, <span class="muted">muted</span>, <span class="good">good</span>,{' '}
        <span class="warn">warning</span>, <span class="bad">bad</span> and <code>code</code>.
      </p>
      <h3>A heading of the third rank</h3>
      <pre>{JSON.stringify({ name: LONG, kept: true }, null, 2)}</pre>
      <dl class="pairs">
        <dt>Name</dt>
        <dd>{LONG}</dd>
        <dt>Made</dt>
        <dd>2026-01-05 08:00:00</dd>
      </dl>
    </>
  );
}

function Badges() {
  return (
    <>
      <p class="row centred">
        <span class="tag">plain</span>
        <span class="tag good">good</span>
        <span class="tag warn">warning</span>
        <span class="tag bad">bad</span>
        <span class="tag plain">chosen of a few</span>
      </p>
      <p class="row centred">
        <span class="state good">healthy</span>
        <span class="state bad">2 problems</span>
        <a class="chip" href={kit.linkHere({})}>
          A chip
        </a>
        <a class="chip" href={kit.linkHere({})} aria-current="true">
          The present one
        </a>
      </p>
      <div class="usages">
        <kit.Usage name="Files" used={3_200_000} limit={10_000_000} />
        <kit.Usage name="Users" used={95} limit={100} isCount />
        <kit.Usage name="Documents" used={1204} limit={null} isCount />
      </div>
      <dl class="tiles">
        <div>
          <dt>Requests</dt>
          <dd>1,204</dd>
        </div>
        <div>
          <dt>Failed</dt>
          <dd class="bad">3</dd>
        </div>
      </dl>
      <ul class="cards">
        <li>
          <a href={kit.linkHere({})}>A card</a> <span class="muted">of a list</span>
        </li>
        <li>Another</li>
      </ul>
    </>
  );
}

function Notices() {
  return (
    <>
      <kit.NoteLine text="The document is stored" isBad={false} onClose={nothing} />
      <kit.NoteLine text="3 documents are in the trash" isBad={false} undo={nothing} onClose={nothing} />
      <kit.NoteLine text={`There is no collection ${LONG}`} isBad onClose={nothing} />
      <kit.Trouble error={refuse()} onRetry={nothing} />
      <p class="banner">The server is newer than this page.</p>
      <div class="attention">
        <h2>2 problems</h2>
        <ul>
          <li>The last backup is older than a day.</li>
          <li>No mail has been sent for an hour.</li>
        </ul>
      </div>
    </>
  );
}

function Plots() {
  return (
    <>
      <kit.Plot title="Requests" unit="a second" fromMs={START} stepMs={600_000} lines={REQUESTS} />
      <kit.Plot title="Without figures" unit="bytes" fromMs={START} stepMs={600_000} lines={NOTHING} />
    </>
  );
}

/** What is shown in both themes. */
const GROUPS: readonly (readonly [title: string, Shown: ComponentType<{ theme: string }>])[] = [
  ['Buttons', Buttons],
  ['Icons', Icons],
  ['Texts', Texts],
  ['Badges and figures', Badges],
  ['Notices', Notices],
  ['Fields of a form', FormFields],
  ['Fields of a schema, with mistakes', MistakenFields],
  ['Fields of a schema, to be read', FixedFields],
  ['Tables', Tables],
  ['Plots', Plots],
];

function Page() {
  const loading = kit.place.value.query.has('loading');
  return (
    <div>
      <kit.PageHead title="Parts" count={GROUPS.length + 3}>
        <a class="button" href={kit.linkHere({ loading: loading ? null : '1' })}>
          {loading ? 'As loaded' : 'While loading'}
        </a>
      </kit.PageHead>
      <h2>Over the page</h2>
      <Overlays />
      <h2>Filters</h2>
      <kit.Filters
        fields={[
          { name: 'word', label: 'Word' },
          { name: 'state', label: 'State', choices: [['good', 'Good']] },
        ]}
      />
      {GROUPS.map(([title, Shown]) => (
        <Group key={title} title={title} Shown={Shown} />
      ))}
      <h2>Editor</h2>
      <Live
        first={JSON.stringify(WRITTEN, null, 2)}
        show={(text) => <kit.JsonEditor text={text} label="JSON of a document" />}
      />
      <kit.Commands cli="bsvc project list" path={kit.pathTo('/api/projects')} />
    </div>
  );
}

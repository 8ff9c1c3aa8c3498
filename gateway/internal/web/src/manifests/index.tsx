// What reached the model, and why. The second segment of the address is a manifest's id, or the name of a view.
import type { JSX } from "preact";
import { route } from "../router";
import { Blame } from "./blame";
import { Compare } from "./compare";
import { List } from "./list";
import { Search } from "./search";
import { Show } from "./show";
import { Verify } from "./verify";

export function Manifests(): JSX.Element {
  const [, id] = route.value.path;
  switch (id) {
    case undefined: return <List />;
    case "compare": return <Compare />;
    case "blame": return <Blame />;
    case "verify": return <Verify />;
    case "search": return <Search />;
    default: return <Show key={id} id={id} />;
  }
}

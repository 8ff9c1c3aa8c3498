package webtest

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTreeByMouse: the tree's rows are opened, shown, dragged and have a menu by the mouse.
func TestTreeByMouse(t *testing.T) {
	t.Parallel()

	g := serve(t)
	house(t, g, "rules\n")
	g.call(t, "folder/create", object{"workspace_id": "house", "name": "Kitchen", "id": "kitchen"})
	g.call(t, "folder/create", object{"workspace_id": "house", "name": "Hall", "id": "hall"})
	g.call(t, "thread/create", object{"workspace_id": "house", "folder_id": "kitchen", "title": "Dinner", "id": "dinner"})
	p := open(t, g.url+"/documents/house", 1280)
	const kitchen, hall, dinner = "[data-key='folder:kitchen']", "[data-key='folder:hall']", "[data-key='thread:dinner']"
	p.do(t, chromedp.Click(kitchen+" .twist"), chromedp.WaitVisible(dinner))
	p.await(t, "location.pathname === '/documents/house'")
	p.do(t, chromedp.Click(kitchen+" .name"))
	p.await(t, "location.pathname === '/documents/house/folder/kitchen'")
	p.do(t, chromedp.Click(dinner+" .more"))
	p.await(t, "document.querySelector('[role=menu]')?.ariaLabel === 'Actions for Dinner'")
	p.press(t, "\u001b")
	p.awaitFocus(t, dinner)
	value[bool](t, p, `document.querySelector("`+hall+`").dispatchEvent(new MouseEvent("contextmenu", {bubbles: true, cancelable: true})) === false`)
	p.await(t, "document.querySelector('[role=menu]')?.ariaLabel === 'Actions for Hall'")
	p.press(t, "\u001b")
	value[bool](t, p, `(() => {
		const data = new DataTransfer(), send = (at, type) => document.querySelector(at).dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: data}));
		send("`+dinner+`", "dragstart");
		if (!send("`+kitchen+`", "dragover")) throw new Error("it may drop where it is");
		if (send("`+hall+`", "dragover")) throw new Error("it may not drop");
		return send("`+hall+`", "drop"), true;
	})()`)
	g.awaitCall(t, "thread/tree", object{"workspace_id": "house"}, func(tree object) bool {
		threads, _ := tree["threads"].([]any)
		thread, _ := threads[0].(object)
		return thread["folder_id"] == "hall"
	})
	p.do(t, chromedp.Click(kitchen+" .name"))
	p.do(t, chromedp.WaitVisible(hall+"[aria-expanded=true]"))
}
